//! What the operator decides for the timers of one namespace.

use std::{collections::HashMap, fmt};

use domain::{Definition, Invalid, Namespace, RetryPolicy, Subject, SubjectPattern};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::SigningSecrets;

const SETTING: &str = "NAMESPACES_FILE";
const RETRY_POLICY: &str = "retry_policy";
const SIGNING_SECRET: &str = "signing_secret";
const SUBJECTS: &str = "subjects";

/// The file `NAMESPACES_FILE`: what holds in a namespace where neither the timer nor the whole service says otherwise.
#[derive(Debug, Clone, Default)]
pub struct NamespaceRules(HashMap<Namespace, Rules>);

#[derive(Debug, Clone, Default)]
struct Rules {
    retry_policy: Option<RetryPolicy>,
    signing: Option<SigningSecrets>,
    /// The only subjects that callbacks may publish to; `None` where that is not limited.
    subjects: Option<Vec<SubjectPattern>>,
}

/// What is decided for a namespace. It holds no secret.
#[derive(Debug, Clone, PartialEq)]
pub struct RulesSummary<'a> {
    pub namespace: &'a Namespace,
    pub retry_policy: Option<RetryPolicy>,
    pub has_signing_secret: bool,
    pub has_subjects: bool,
}

impl NamespaceRules {
    /// The namespaces that have an entry, with what it holds.
    pub fn summaries(&self) -> impl Iterator<Item = RulesSummary<'_>> {
        self.0.iter().map(|(namespace, rules)| RulesSummary {
            namespace,
            retry_policy: rules.retry_policy,
            has_signing_secret: rules.signing.is_some(),
            has_subjects: rules.subjects.is_some(),
        })
    }

    /// Reads `{"billing": {"retry_policy": {…}, "signing_secret": "whsec_…", "subjects": ["billing.>"]}}`. Complaints never repeat what
    /// is written where a secret may be.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let mut rules = HashMap::new();
        for (name, text) in members(text).map_err(|complaint| Invalid::new(SETTING, complaint))? {
            let refused = |complaint| Invalid::new(SETTING, format!("is wrong in namespace {name:?}: {complaint}"));
            let namespace = Namespace::parse(&name).map_err(|invalid| refused(invalid.to_string()))?;
            if rules.insert(namespace, Rules::parse(text.get()).map_err(refused)?).is_some() {
                return Err(refused("it is there twice".to_owned()));
            }
        }
        Ok(Self(rules))
    }

    /// How a failed call is tried again: as the timer itself says, or else its namespace.
    pub fn retries(&self, definition: &Definition) -> Option<RetryPolicy> {
        definition.retries().or_else(|| self.0.get(&definition.namespace)?.retry_policy)
    }

    /// Refuses a subject that callbacks of this namespace may not publish to.
    pub fn check_subject(&self, namespace: &Namespace, subject: &Subject) -> Result<(), Invalid> {
        let Some(subjects) = self.0.get(namespace).and_then(|rules| rules.subjects.as_ref()) else { return Ok(()) };
        if subjects.iter().any(|pattern| subject.matches(pattern)) {
            return Ok(());
        }
        let allowed: Vec<_> = subjects.iter().map(SubjectPattern::as_str).collect();
        let rule = match allowed.join(", ") {
            none if none.is_empty() => "must not be given: its namespace publishes to no subject".to_owned(),
            allowed => format!("must be one of the subjects of its namespace: {allowed}"),
        };
        Err(Invalid::new("callback.topic", rule))
    }

    /// The secrets of a namespace that has its own.
    pub(crate) fn signing(&self, namespace: &Namespace) -> Option<&SigningSecrets> {
        self.0.get(namespace)?.signing.as_ref()
    }
}

impl Rules {
    fn parse(text: &str) -> Result<Self, String> {
        let mut rules = Self::default();
        for (name, text) in members(text)? {
            let is_new = match name.as_str() {
                RETRY_POLICY => {
                    let policy = RetryPolicy::from_json(text.get()).map_err(|invalid| explain(text.get(), &invalid))?;
                    rules.retry_policy.replace(policy).is_none()
                }
                SIGNING_SECRET => {
                    let secret: String =
                        serde_json::from_str(text.get()).map_err(|_| format!("{SIGNING_SECRET} must be a string"))?;
                    let secrets =
                        SigningSecrets::parse(&secret).map_err(|invalid| format!("{SIGNING_SECRET} {}", invalid.rule))?;
                    rules.signing.replace(secrets).is_none()
                }
                SUBJECTS => rules.subjects.replace(parse_subjects(text.get())?).is_none(),
                _ => return Err(format!("there is a field that is none of {RETRY_POLICY}, {SIGNING_SECRET} and {SUBJECTS}")),
            };
            if !is_new {
                return Err(format!("{name} is there twice"));
            }
        }
        Ok(rules)
    }
}

fn parse_subjects(text: &str) -> Result<Vec<SubjectPattern>, String> {
    let subjects: Vec<String> = serde_json::from_str(text).map_err(|_| format!("{SUBJECTS} must be a list of strings"))?;
    let parse = |(n, text): (usize, &String)| SubjectPattern::parse(&format!("{SUBJECTS}[{n}]"), text);
    subjects.iter().enumerate().map(parse).collect::<Result<_, _>>().map_err(|invalid| invalid.to_string())
}

/// A complaint about a policy may repeat what is written in it: that is no secret, unless one was put into the wrong place.
fn explain(policy: &str, invalid: &Invalid) -> String {
    if policy.contains(SigningSecrets::PREFIX) {
        format!("{RETRY_POLICY} holds a secret: that belongs into {SIGNING_SECRET}")
    } else {
        invalid.to_string()
    }
}

/// The members of a JSON object in their order, repeated ones too; or what is wrong with it. Serde's own words are not used:
/// they repeat values.
fn members(text: &str) -> Result<Vec<(String, Box<RawValue>)>, String> {
    serde_json::from_str::<Members>(text).map(|members| members.0).map_err(|error| {
        if error.is_data() {
            "must hold an object".to_owned()
        } else {
            format!("must be valid JSON, but line {} is not", error.line())
        }
    })
}

struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timers;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn parse(text: &str) -> NamespaceRules {
        NamespaceRules::parse(text).unwrap()
    }

    #[test]
    fn a_timers_own_policy_comes_before_that_of_its_namespace() {
        let rules = parse(r#"{"billing": {"retry_policy": {"max_retries": 7}}, "plain": {}}"#);
        let own = RetryPolicy { max_retries: 1, ..RetryPolicy::default() };
        for (namespace, policy, is_event, retries) in [
            ("billing", None, false, Some(7)),
            ("billing", Some(own), false, Some(1)),
            ("plain", None, false, None),
            ("plain", Some(own), false, Some(1)),
            ("other", None, false, None),
            ("other", Some(own), false, Some(1)),
            // A client waits for an event whatever its namespace.
            ("billing", None, true, Some(u32::MAX)),
        ] {
            let mut timer = if is_event { timers::event() } else { timers::http("http://127.0.0.1/", "") };
            timer.definition.namespace = Namespace::parse(namespace).unwrap();
            timer.definition.retry_policy = policy;
            let met = rules.retries(&timer.definition).map(|policy| policy.max_retries);
            assert_eq!(met, retries, "{namespace} {policy:?} {is_event}");
        }
    }

    #[test]
    fn a_summary_tells_of_which_kinds_there_are_rules() {
        let rules = parse(&format!(r#"{{"billing": {{"signing_secret": "{SECRET}", "subjects": []}}}}"#));
        let billing = Namespace::parse("billing").unwrap();
        let summary = RulesSummary { namespace: &billing, retry_policy: None, has_signing_secret: true, has_subjects: true };
        assert_eq!(rules.summaries().collect::<Vec<_>>(), [summary]);
    }

    #[test]
    fn secrets_are_those_of_one_namespace() {
        let rules = parse(&format!(r#"{{"billing": {{"signing_secret": "{SECRET},{SECRET}"}}, "plain": {{}}}}"#));
        for (namespace, has_own) in [("billing", true), ("plain", false), ("Billing", false), ("default", false)] {
            assert_eq!(rules.signing(&Namespace::parse(namespace).unwrap()).is_some(), has_own, "{namespace}");
        }
        assert!(!format!("{rules:?}").contains("MfKQ"));
    }

    #[test]
    fn a_namespace_with_subjects_publishes_to_no_others() {
        let rules = parse(r#"{"billing": {"subjects": ["billing.>", "shared.*.in"]}, "mute": {"subjects": []}, "plain": {}}"#);
        let of_billing = "callback.topic must be one of the subjects of its namespace: billing.>, shared.*.in";
        for (namespace, subject, answer) in [
            ("billing", "billing.late", Ok(())),
            ("billing", "shared.eu.in", Ok(())),
            ("billing", "billing", Err(of_billing)),
            ("billing", "orders.late", Err(of_billing)),
            ("mute", "billing.late", Err("callback.topic must not be given: its namespace publishes to no subject")),
            ("plain", "orders.late", Ok(())),
            ("other", "orders.late", Ok(())),
        ] {
            let met = rules.check_subject(&Namespace::parse(namespace).unwrap(), &Subject::parse(subject).unwrap());
            assert_eq!(met.map_err(|refusal| refusal.to_string()), answer.map_err(str::to_owned), "{namespace} {subject}");
        }
    }

    #[test]
    fn a_bad_file_is_refused_by_namespace_and_never_repeats_a_secret() {
        for (text, complaint) in [
            ("", "must be valid JSON, but line 1 is not"),
            ("{\n\"billing\": {\"signing_secret\": \"whsec_tooshort\"", "must be valid JSON, but line 2 is not"),
            (r#""whsec_tooshort""#, "must hold an object"),
            ("[]", "must hold an object"),
            (r#"{"": {}}"#, r#"is wrong in namespace "": namespace must"#),
            (r#"{"billing": "whsec_tooshort"}"#, r#"is wrong in namespace "billing": must hold an object"#),
            (r#"{"billing": null}"#, r#"is wrong in namespace "billing": must hold an object"#),
            (r#"{"billing": {}, "billing": {}}"#, r#"is wrong in namespace "billing": it is there twice"#),
            (
                r#"{"billing": {"whsec_tooshort": 1}}"#,
                r#"is wrong in namespace "billing": there is a field that is none of retry_policy, signing_secret and subjects"#,
            ),
            (r#"{"billing": {"subjects": "a.b"}}"#, r#"is wrong in namespace "billing": subjects must be a list of strings"#),
            (r#"{"billing": {"subjects": null}}"#, r#"is wrong in namespace "billing": subjects must be a list of strings"#),
            (r#"{"billing": {"subjects": ["a", 1]}}"#, r#"is wrong in namespace "billing": subjects must be a list of strings"#),
            (
                r#"{"billing": {"subjects": ["a", "whsec_tooshort a"]}}"#,
                r#"is wrong in namespace "billing": subjects[1] must be a NATS subject: tokens joined by dots"#,
            ),
            (
                r#"{"billing": {"subjects": [""]}}"#,
                r#"is wrong in namespace "billing": subjects[0] must have 1 to 255 characters"#,
            ),
            (r#"{"billing": {"subjects": [], "subjects": []}}"#, r#"is wrong in namespace "billing": subjects is there twice"#),
            (
                r#"{"billing": {"retry_policy": {}, "retry_policy": {}}}"#,
                r#"is wrong in namespace "billing": retry_policy is there twice"#,
            ),
            (
                r#"{"billing": {"retry_policy": {"max_retries": 1001}}}"#,
                r#"is wrong in namespace "billing": retry_policy.max_retries must be a whole number from 0 to 1000"#,
            ),
            (
                r#"{"billing": {"retry_policy": {"retries": 1}}}"#,
                r#"is wrong in namespace "billing": retry_policy.'retries' is not a known field"#,
            ),
            (
                r#"{"billing": {"retry_policy": {"max_retries": "whsec_tooshort"}}}"#,
                r#"is wrong in namespace "billing": retry_policy holds a secret"#,
            ),
            (r#"{"billing": {"retry_policy": null}}"#, r#"is wrong in namespace "billing": retry_policy must be an object"#),
            (
                r#"{"billing": {"signing_secret": "whsec_tooshort"}}"#,
                r#"is wrong in namespace "billing": signing_secret must be whsec_ and then 24 to 64 bytes as base64"#,
            ),
            (
                r#"{"billing": {"signing_secret": ["whsec_tooshort"]}}"#,
                r#"is wrong in namespace "billing": signing_secret must be a string"#,
            ),
        ] {
            let met = NamespaceRules::parse(text).unwrap_err().to_string();
            assert!(met.starts_with(&format!("NAMESPACES_FILE {complaint}")), "{text}: {met}");
            assert!(!met.contains("tooshort"), "{met}");
        }
    }
}
