//! Requests in JSON bodies. Each is one struct: serde reads it, the OpenAPI document describes it. Its members are [`Given`], so that
//! each is read under its name, and a new field is one line there and one where the request becomes a command.

use commands::Field;
use domain::{FromMember, Given, Invalid, MemberNames, names_of, read_object};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

use crate::error::ApiError;

/// What a body is called in complaints.
pub(crate) const BODY: &str = "the body";

/// Reads a body into the struct of its request. Refuses unknown names, and names that are given twice.
pub(crate) fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ApiError> {
    read_refusing(text, &[], "")
}

/// The same for a request that refuses some names by a rule of their own.
pub(crate) fn read_refusing<'a, T: Deserialize<'a>>(text: &'a str, refused: &[&str], rule: &str) -> Result<T, ApiError> {
    match read_object(text) {
        Some(request) => Ok(request),
        None => {
            let names = names_in(BODY, text, &[names_of::<T>(), refused])?;
            let name = names.first_of(refused).ok_or(ApiError::Internal)?;
            Err(Invalid::new(name, rule).into())
        }
    }
}

/// The names in a text that could not be read, which complaints call `subject`. Refuses the first that is unknown or given twice.
pub(crate) fn names_in<'a>(subject: &str, text: &'a str, known: &[&[&str]]) -> Result<MemberNames<'a>, ApiError> {
    let names = MemberNames::in_text(text).map_err(|error| malformed(subject, &error))?;
    names.check(known)?;
    Ok(names)
}

fn malformed(subject: &str, error: &serde_json::Error) -> ApiError {
    use serde_json::error::Category;
    ApiError::Malformed(match error.classify() {
        Category::Data => format!("{subject} must be a JSON object"),
        _ => format!("{subject} is not valid JSON: {error}"),
    })
}

/// A member that `null` clears.
pub(crate) fn clearable<'a, T: FromMember<'a>, V: From<T>>(member: &Given<'a, T>, name: &str) -> Result<Field<V>, Invalid> {
    if member.is_null() {
        return Ok(Field::Clear);
    }
    Ok(member.read(name)?.map_or(Field::Absent, |value| Field::Set(value.into())))
}

/// The elements of an array, each as the text it was; at least one, and not more than `ELEMENTS_MAX`.
pub(crate) struct Elements<'a, const ELEMENTS_MAX: usize>(pub Vec<&'a RawValue>);

impl<'a, const ELEMENTS_MAX: usize> FromMember<'a> for Elements<'a, ELEMENTS_MAX> {
    fn from_member(name: &str, raw: &'a RawValue) -> Result<Self, Invalid> {
        let not_an_array = |_| Invalid::new(name, "must be an array");
        // Counted before they are collected: what is ignored takes no memory, however many there are.
        let count = serde_json::from_str::<Vec<IgnoredAny>>(raw.get()).map_err(not_an_array)?.len();
        if !(1..=ELEMENTS_MAX).contains(&count) {
            return Err(Invalid::new(name, format!("must have 1 to {ELEMENTS_MAX} elements")));
        }
        serde_json::from_str(raw.get()).map(Self).map_err(not_an_array)
    }
}
