//! Conditions that several statements share.

use domain::Namespace;
use store::Period;

use super::parameters::Parameters;

pub fn within(time: &str, period: Period, parameters: &mut Parameters) -> String {
    let from = period.from.map(|from| format!(" AND {time} >= {}", parameters.number(from.as_micros())));
    let to = period.to.map(|to| format!(" AND {time} < {}", parameters.number(to.as_micros())));
    format!("{}{}", from.unwrap_or_default(), to.unwrap_or_default())
}

pub fn in_namespaces(namespaces: &[Namespace], parameters: &mut Parameters) -> String {
    let names: Vec<_> = namespaces.iter().map(|namespace| parameters.bytes(namespace.as_str())).collect();
    format!("f.namespace IN ({})", names.join(", "))
}
