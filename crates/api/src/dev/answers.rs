//! `PUT /dev/inbox/answers`: what the receiver answers from now on.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use bytes::Bytes;
use dev::{ANSWER_DELAY_MAX, ANSWERS_MAX, DevTools};
use domain::{FromMember, Given, Invalid, Span, Whole, read_object_in};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{auth::Administering, body::JsonBody, envelope::Answer, error::ApiError, request};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
struct ReplaceAnswers<'a> {
    #[serde(default)]
    answers: Given<'a, Programmed<'a>>,
}

/// The elements of `answers`, which may be none.
struct Programmed<'a>(Vec<&'a RawValue>);

impl<'a> FromMember<'a> for Programmed<'a> {
    fn from_member(name: &str, raw: &'a RawValue) -> Result<Self, Invalid> {
        let elements: Vec<_> = serde_json::from_str(raw.get()).map_err(|_| Invalid::new(name, "must be an array"))?;
        if elements.len() > ANSWERS_MAX {
            return Err(Invalid::new(name, format!("must not have more than {ANSWERS_MAX} elements")));
        }
        Ok(Self(elements))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
struct ProgrammedAnswer<'a> {
    #[serde(default)]
    path: Given<'a, Cow<'a, str>>,
    #[serde(default)]
    status: Given<'a, Whole<200, 599>>,
    #[serde(default)]
    headers: Given<'a, AnswerHeaders>,
    #[serde(default)]
    body: Given<'a, AnswerBody>,
    #[serde(default)]
    delay: Given<'a, Span>,
    #[serde(default)]
    times: Given<'a, Whole<0, 1_000_000>>,
    #[serde(default)]
    hang: Given<'a, Hang>,
}

/// Headers of an answer: an object of strings.
struct AnswerHeaders(HeaderMap);

impl FromMember<'_> for AnswerHeaders {
    fn from_member(name: &str, raw: &RawValue) -> Result<Self, Invalid> {
        let not_headers = || Invalid::new(name, "must be an object with strings that are fit to be headers");
        let texts: BTreeMap<String, String> = serde_json::from_str(raw.get()).map_err(|_| not_headers())?;
        let mut headers = HeaderMap::new();
        for (name, value) in texts {
            let name: HeaderName = name.parse().map_err(|_| not_headers())?;
            headers.insert(name, HeaderValue::from_str(&value).map_err(|_| not_headers())?);
        }
        Ok(Self(headers))
    }
}

/// A text as it is, or any other JSON as its text.
struct AnswerBody(Bytes);

impl FromMember<'_> for AnswerBody {
    fn from_member(_name: &str, raw: &RawValue) -> Result<Self, Invalid> {
        let text = domain::string_in(raw).map_or_else(|| raw.get().to_owned(), Cow::into_owned);
        Ok(Self(Bytes::from(text)))
    }
}

struct Hang(bool);

impl FromMember<'_> for Hang {
    fn from_member(name: &str, raw: &RawValue) -> Result<Self, Invalid> {
        serde_json::from_str(raw.get()).map(Self).map_err(|_| Invalid::new(name, "must be true or false"))
    }
}

#[derive(Serialize)]
pub(super) struct AnswersView {
    answers: usize,
}

pub(super) fn replace(tools: &DevTools, _: Administering, body: JsonBody) -> Result<Answer<AnswersView>, ApiError> {
    let ReplaceAnswers { answers } = request::read(&body.text)?;
    let Programmed(elements) = answers.required("answers")?;
    let answers: Vec<_> = elements.iter().enumerate().map(|(at, raw)| read(at, raw)).collect::<Result<_, _>>()?;
    let count = answers.len();
    tools.answers.replace(answers);
    Ok(Answer::ok("the receiver answers so from now on", AnswersView { answers: count }))
}

fn read(at: usize, raw: &RawValue) -> Result<dev::Answer, ApiError> {
    let place = format!("answers.{at}");
    let named = |member: &str| format!("{place}.{member}");
    let answer: ProgrammedAnswer<'_> = read_object_in(&place, raw.get())?;
    let delay = answer.delay.read_unless_null(&named("delay"))?.map_or(Duration::ZERO, Span::as_duration);
    if delay > ANSWER_DELAY_MAX {
        return Err(Invalid::new(named("delay"), format!("must not be longer than {} s", ANSWER_DELAY_MAX.as_secs())).into());
    }
    let path = answer.path.read_unless_null(&named("path"))?.map(Cow::into_owned);
    if path.as_ref().is_some_and(|path| !path.starts_with('/')) {
        return Err(Invalid::new(named("path"), "must begin with /").into());
    }
    let Whole(status) = answer.status.read_unless_null(&named("status"))?.unwrap_or(Whole(200));
    let status = u16::try_from(status).ok().and_then(|status| StatusCode::from_u16(status).ok()).ok_or(ApiError::Internal)?;
    let reply = dev::Reply {
        status,
        headers: answer.headers.read_unless_null(&named("headers"))?.map(|AnswerHeaders(headers)| headers).unwrap_or_default(),
        body: answer.body.read_unless_null(&named("body"))?.map(|AnswerBody(body)| body).unwrap_or_default(),
    };
    let is_hanging = answer.hang.read_unless_null(&named("hang"))?.is_some_and(|Hang(hang)| hang);
    Ok(dev::Answer {
        path,
        times: answer.times.read_unless_null(&named("times"))?.map(|Whole(times)| u64::from(times)),
        delay,
        reply: (!is_hanging).then_some(reply),
    })
}
