use std::time::Duration;

use throwaway::NatsCluster;

use crate::rig::{COMMANDS, EVENTS, Process, Witness, command};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_loses_the_leader_of_the_stream_loses_no_acknowledged_command() {
    let cluster = NatsCluster::start(3);
    let process = Process::start(&cluster.urls());
    let witness = Witness::of(&cluster.urls()).await;
    witness.until_ready().await;
    for stream in [COMMANDS, EVENTS] {
        assert_eq!(witness.stream(stream).await.unwrap().config.num_replicas, 3);
    }
    let urls = cluster.urls();
    let sending = tokio::spawn(async move {
        let witness = Witness::of(&urls).await;
        for n in 0..800 {
            witness.send_surely(&command(&n.to_string())).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    process.until_timers(200).await;
    tokio::task::block_in_place(|| {
        let leader = (0..100).find_map(|_| cluster.stream_leader(COMMANDS)).unwrap();
        cluster.stop_immediate(leader);
    });
    sending.await.unwrap();
    process.until_timers(800).await;
    assert_eq!(process.timers().await, 800);
    process.stop().await;
}
