use rustls::RootCertStore;

/// The authorities that this machine trusts; those of Mozilla where it trusts none, as in an image without certificates.
pub(crate) fn of_this_machine() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(error = %error, "certificates of this machine could not be read");
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        tracing::info!("no certificates found on this machine: using the built-in ones");
    }
    roots
}
