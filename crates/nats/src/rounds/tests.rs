use std::sync::atomic::{AtomicU64, Ordering};

use tokio::{runtime, sync::watch};

use super::*;

fn job(bytes: usize) -> Job {
    let message = Outgoing { subject: "a".to_owned(), headers: Vec::new(), payload: vec![0; bytes].into() };
    Job { message, reply: None, verdict: oneshot::channel().0 }
}

#[tokio::test]
async fn a_round_has_a_limit_in_messages_and_one_in_bytes() {
    let (sender, mut queue) = mpsc::channel(QUEUE_MAX);
    let sizes =
        [vec![1; ROUND_MESSAGES_MAX + 1], vec![ROUND_BYTES_MAX - 100, 40, 60, 200], vec![ROUND_BYTES_MAX + 1, 0]].concat();
    for bytes in sizes {
        sender.try_send(job(bytes)).ok().unwrap();
    }
    drop(sender);
    let (mut held, mut rounds) = (None, Vec::new());
    while let Some(jobs) = gather(&mut queue, &mut held).await {
        rounds.push(jobs.len());
    }
    // The last but one is larger than any round, and has a round of its own.
    assert_eq!(rounds, [64, 3, 2, 1, 1]);
}

#[test]
fn what_came_in_during_a_round_decides_about_it() {
    let sent = ["a", "a", "b", "c"].map(|subject| Sent { subject: subject.to_owned(), verdict: oneshot::channel().0 });
    let denials =
        |counts: &[(&str, usize)]| counts.iter().map(|(subject, count)| ((*subject).to_owned(), *count)).collect::<Denials>();
    let verdict = |events, denied: &[(&str, usize)], complaint: Option<&str>| {
        understand(Since { events, denied: denials(denied), complaint: complaint.map(str::to_owned) }, &sent)
    };
    assert_eq!(verdict(0, &[], None), Ok(denials(&[])));
    assert_eq!(verdict(3, &[("a", 2), ("b", 1)], None), Ok(denials(&[("a", 2), ("b", 1)])));
    assert_eq!(verdict(127, &[], None), Ok(denials(&[])));
    assert_eq!(verdict(128, &[], None), Err(PublishError::Unheard));
    assert_eq!(verdict(1, &[], Some("no")), Err(PublishError::Refused("no".to_owned())));
    // Too few refusals, too many, or a subject to which no message was published.
    for (subject, count) in [("a", 1), ("a", 3), ("b", 2), ("d", 1)] {
        let refused = PublishError::Refused(format!("no permission to publish to {subject}"));
        assert_eq!(verdict(1, &[(subject, count)], None), Err(refused));
    }
}

/// The third step of the proof rests on the order in which the runtime polls tasks: the reader wakes the task that processes
/// refusals, then the one that awaits the marker, and both may be woken for other reasons. This test fails should a new version
/// of the runtime behave otherwise.
#[test]
fn a_task_that_yields_sees_what_was_said_before() {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (say, mut said) = mpsc::channel::<u64>(EVENTS_HELD_MAX as usize);
        let (mark, mut marks) = watch::channel(0);
        let (go, mut turns) = mpsc::channel(1);
        let heard = Arc::new(AtomicU64::new(0));

        let hearing = heard.clone();
        tokio::spawn(async move {
            while let Some(number) = said.recv().await {
                hearing.store(number, Ordering::SeqCst);
            }
        });
        let round = tokio::spawn(async move {
            for number in 1..=10_000 {
                go.send(number).await.unwrap();
                // Spurious wake-ups now and then, which put this task ahead of all other tasks in the run queue.
                while *marks.borrow_and_update() < number {
                    if number % 3 == 0 {
                        yield_now().await;
                    } else {
                        marks.changed().await.unwrap();
                    }
                }
                yield_now().await;
                assert_eq!(heard.load(Ordering::SeqCst), number);
            }
        });
        tokio::spawn(async move {
            while let Some(number) = turns.recv().await {
                if number % 2 == 0 {
                    yield_now().await;
                }
                // As many events as the library buffers, of which the last counts.
                for _ in 1..EVENTS_HELD_MAX {
                    say.try_send(0).unwrap();
                }
                say.try_send(number).unwrap();
                mark.send_replace(number);
            }
        });
        round.await.unwrap();
    });
}
