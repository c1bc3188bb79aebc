//! A Cassandra that takes encrypted connections only, from those who have a certificate and a password.

use std::{fs, net::Ipv4Addr, path::Path};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use store_cassandra::{Cassandra, CassandraOptions, OpenError};
use store_partitioned::Database;
use throwaway::CassandraGuard;

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// The certificate of 127.0.0.1, and its key.
fn identity(authority: &CertifiedIssuer<'static, KeyPair>) -> (String, String) {
    let (mut params, key) = (CertificateParams::default(), KeyPair::generate().unwrap());
    params.subject_alt_names = vec![SanType::IpAddress(Ipv4Addr::LOCALHOST.into())];
    (params.signed_by(&key, authority).unwrap().pem(), key.serialize_pem())
}

fn write(directory: &Path, name: &str, text: &str) -> String {
    let file = directory.join(name);
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_encrypted_and_both_sides_prove_who_they_are() {
    let (directory, own, other) = (tempfile::tempdir().unwrap(), authority(), authority());
    let file = |name: &str, text: &str| write(directory.path(), name, text);
    let (trusted, untrusted) = (file("ca.pem", &own.pem()), file("other.pem", &other.pem()));
    let ((node, node_key), (client, client_key)) = (identity(&own), identity(&own));
    let node = file("node.pem", &format!("{node_key}{node}"));
    let (client, client_key) = (file("client.pem", &client), file("client-key.pem", &client_key));

    let guard = CassandraGuard { identity: node.as_ref(), clients: trusted.as_ref() };
    let server = tokio::task::block_in_place(|| throwaway::Cassandra::start_guarded(&guard));
    let server = server.expect("scripts/cassandra.sh --fetch gets a Cassandra");
    let url = server.url("guarded");
    let connect = async |user: &str, parameters: &str| {
        let url = url.replacen("://", &format!("://{user}@"), 1);
        Cassandra::connect(&CassandraOptions::parse(&format!("{url}{parameters}")).unwrap()).await
    };
    let user = "cassandra:cassandra";
    let known = format!("&sslcert={client}&sslkey={client_key}");

    for mode in ["verify-full", "verify-ca"] {
        let database = connect(user, &format!("&sslmode={mode}&sslrootcert={trusted}{known}")).await.unwrap();
        database.ping().await.unwrap();
    }
    for (user, parameters, why) in [
        (user, String::new(), "not encrypted"),
        (user, format!("&sslmode=verify-ca&sslrootcert={untrusted}{known}"), "an authority that is not trusted"),
        (user, format!("&sslmode=verify-ca&sslrootcert={trusted}"), "a client without a certificate"),
        ("cassandra:secret", format!("&sslmode=verify-ca&sslrootcert={trusted}{known}"), "a wrong password"),
    ] {
        let refused = connect(user, &parameters).await.err().expect(why);
        println!("{why}: {refused}");
        assert!(matches!(refused, OpenError::Unreachable(_)) && !refused.to_string().contains("secret"), "{why}: {refused}");
    }
    let missing = connect(user, "&sslmode=verify-ca&sslrootcert=/none.pem").await.err().unwrap();
    assert!(matches!(missing, OpenError::Certificates(_)) && missing.to_string().contains("/none.pem"), "{missing}");
}
