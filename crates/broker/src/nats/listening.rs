//! The subjects that a stream really listens on: its own, those of subject mappings as they are published, and those of the
//! streams that it copies.

use std::collections::HashSet;

use async_nats::jetstream::{
    Context,
    stream::{self, Source},
};

use super::jetstream_api;

/// How many source streams are followed from one stream. More are a cycle, or beyond what a node has to know.
const STREAMS_MAX: usize = 32;

/// Every subject through which a message gets into this stream, as far as the server tells.
pub(super) async fn subjects(context: &Context, config: &stream::Config) -> Vec<String> {
    let mut found = own(config);
    let mut followed = HashSet::from([config.name.clone()]);
    let mut sources = sources(config);
    while let Some(source) = sources.pop() {
        let taken = taken(&source);
        // A source in another account cannot be reached by callbacks of this account.
        if !taken.is_empty() || source.external.is_some() {
            found.extend(taken);
        } else if followed.len() < STREAMS_MAX && followed.insert(source.name.clone()) {
            match jetstream_api::find::<stream::Info>(context, format!("STREAM.INFO.{}", source.name)).await {
                Ok(Some(info)) => {
                    found.extend(own(&info.config));
                    sources.extend(self::sources(&info.config));
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(
                    nats.stream = source.name,
                    %error,
                    "what a source of a stream of ours listens on cannot be read: callbacks may publish to it"
                ),
            }
        }
    }
    found
}

fn own(config: &stream::Config) -> Vec<String> {
    let mapped = config.subject_transform.iter().map(|transform| transform.source.clone());
    config.subjects.iter().cloned().chain(mapped.filter(|source| source != ">")).collect()
}

fn sources(config: &stream::Config) -> Vec<Source> {
    config.mirror.iter().chain(config.sources.iter().flatten()).cloned().collect()
}

/// The subjects that are copied from a source; empty when all are.
fn taken(source: &Source) -> Vec<String> {
    let mapped = source.subject_transforms.iter().map(|transform| &transform.source);
    let all = source.filter_subject.iter().chain(mapped).filter(|text| !text.is_empty());
    let all: Vec<String> = all.cloned().collect();
    if all.iter().any(|text| text == ">") { Vec::new() } else { all }
}

#[cfg(test)]
mod tests {
    use async_nats::jetstream::stream::SubjectTransform;

    use super::*;

    #[test]
    fn a_mapped_subject_counts_as_it_is_published() {
        let transform = |source: &str| SubjectTransform { source: source.to_owned(), destination: "timer.commands.>".to_owned() };
        let listening = |subjects: &[&str], mapped: &str| {
            let subjects = subjects.iter().map(|subject| (*subject).to_owned()).collect();
            own(&stream::Config { subjects, subject_transform: Some(transform(mapped)), ..stream::Config::default() })
        };
        assert_eq!(listening(&["a.>"], "a.b.*"), ["a.>", "a.b.*"]);
        // A mapping of `>` applies to what the stream's own subjects let in, and adds none.
        assert_eq!(listening(&["a.>"], ">"), ["a.>"]);

        let source = Source { name: "S".to_owned(), ..Source::default() };
        assert!(taken(&source).is_empty());
        assert_eq!(taken(&Source { filter_subject: Some("a.*".to_owned()), ..source.clone() }), ["a.*"]);
        assert_eq!(taken(&Source { subject_transforms: vec![transform("b.>")], ..source.clone() }), ["b.>"]);
        assert!(taken(&Source { subject_transforms: vec![transform(">")], ..source }).is_empty());
    }
}
