//! Encrypted connections: which certificates of nodes are trusted, and with which one this service introduces itself.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use domain::Cause;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_cert_signed_by_trust_anchor,
    },
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
};

/// What a node has to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verification {
    /// A certificate of a trusted authority.
    Authority,
    /// One that names the address at which the node was reached, besides.
    AuthorityAndAddress,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsOptions {
    pub verification: Verification,
    /// The certificates of the trusted authorities, as PEM; those that this machine trusts, if none are named.
    pub roots: Option<PathBuf>,
    /// Certificate and key of this service, as PEM, where Cassandra asks for them.
    pub identity: Option<(PathBuf, PathBuf)>,
}

impl TlsOptions {
    /// Reads the files.
    pub fn config(&self) -> Result<ClientConfig, Cause> {
        let provider = Arc::new(ring::default_provider());
        let roots = Arc::new(self.roots()?);
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let builder = builder.map_err(Cause::of)?;
        let builder = match self.verification {
            Verification::AuthorityAndAddress => {
                let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider).build().map_err(Cause::of)?;
                builder.with_webpki_verifier(verifier)
            }
            Verification::Authority => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyAddress { roots, provider }))
            }
        };
        match &self.identity {
            Some((certificate, key)) => {
                let key = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, error))?;
                builder.with_client_auth_cert(certificates(certificate)?, key).map_err(Cause::of)
            }
            None => Ok(builder.with_no_client_auth()),
        }
    }

    fn roots(&self) -> Result<RootCertStore, Cause> {
        let mut roots = RootCertStore::empty();
        match &self.roots {
            Some(file) => {
                for certificate in certificates(file)? {
                    roots.add(certificate).map_err(|error| unreadable(file, error))?;
                }
            }
            None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
        }
        if roots.is_empty() { Err("no certificate authority is trusted: name one in `sslrootcert`".into()) } else { Ok(roots) }
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Cause> {
    let read = || CertificateDer::pem_file_iter(file)?.collect::<Result<Vec<_>, _>>();
    match read() {
        Ok(certificates) if certificates.is_empty() => Err(format!("{} holds no certificate", file.display()).into()),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(unreadable(file, error)),
    }
}

fn unreadable(file: &Path, error: impl std::error::Error + Send + Sync + 'static) -> Cause {
    Cause::new(format!("{} cannot be used: {error}", file.display()), error)
}

/// Trusts a certificate of a trusted authority, whatever it names. The driver knows nodes by their addresses, which few certificates do.
#[derive(Debug)]
struct AnyAddress {
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyAddress {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = ParsedCertificate::try_from(certificate)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&certificate, &self.roots, intermediates, now, algorithms)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, net::Ipv4Addr};

    use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
    use rustls::{ClientConnection, ServerConfig, ServerConnection};

    use super::*;

    /// Whether a client of 127.0.0.1 goes on with a node that shows this certificate.
    fn is_trusted(options: &TlsOptions, shown: &CertifiedKey<KeyPair>) -> bool {
        let key = PrivateKeyDer::try_from(shown.signing_key.serialize_der()).unwrap();
        let node = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![shown.cert.der().clone()], key)
            .unwrap();
        let mut node = ServerConnection::new(Arc::new(node)).unwrap();
        let name = ServerName::IpAddress(Ipv4Addr::LOCALHOST.into());
        let mut client = ClientConnection::new(Arc::new(options.config().unwrap()), name).unwrap();
        while client.is_handshaking() || node.is_handshaking() {
            let mut sent = Vec::new();
            client.write_tls(&mut sent).unwrap();
            node.read_tls(&mut sent.as_slice()).unwrap();
            node.process_new_packets().unwrap();
            let mut answered = Vec::new();
            node.write_tls(&mut answered).unwrap();
            client.read_tls(&mut answered.as_slice()).unwrap();
            if client.process_new_packets().is_err() {
                return false;
            }
        }
        true
    }

    #[test]
    fn a_node_is_trusted_by_its_authority_and_if_wanted_by_its_address() {
        use Verification::{Authority, AuthorityAndAddress};
        let made = |name: &str| generate_simple_self_signed([name.to_owned()]).unwrap();
        let (right, elsewhere, stranger) = (made("127.0.0.1"), made("127.0.0.2"), made("127.0.0.1"));
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("roots.pem");
        fs::write(&file, right.cert.pem() + &elsewhere.cert.pem()).unwrap();
        for (verification, shown, is_good) in [
            (AuthorityAndAddress, &right, true),
            (AuthorityAndAddress, &elsewhere, false),
            (AuthorityAndAddress, &stranger, false),
            (Authority, &right, true),
            (Authority, &elsewhere, true),
            (Authority, &stranger, false),
        ] {
            let options = TlsOptions { verification, roots: Some(file.clone()), identity: None };
            assert_eq!(is_trusted(&options, shown), is_good, "{verification:?}");
        }
    }

    #[test]
    fn files_that_are_of_no_use_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let empty = directory.path().join("empty.pem");
        fs::write(&empty, "").unwrap();
        for (file, reason) in [(empty, "holds no certificate"), (directory.path().join("none.pem"), "cannot be used")] {
            let options = TlsOptions { verification: Verification::Authority, roots: Some(file.clone()), identity: None };
            let refused = options.config().unwrap_err().to_string();
            assert!(refused.contains(reason) && refused.contains(file.to_str().unwrap()), "{refused}");
        }
    }
}
