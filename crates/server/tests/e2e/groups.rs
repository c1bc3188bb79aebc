//! Timers that belong together, counted and canceled together.

use serde_json::json;

use crate::rig::{Backend, Receiver, Service, beside_others, callback_to, for_each_store};

const TIMERS: usize = 1_200;

for_each_store!(mariadb in soak: a_group_is_counted_and_canceled_and_its_neighbours_are_left_alone);

async fn a_group_is_counted_and_canceled_and_its_neighbours_are_left_alone(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::start();
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s")]).await;
    let client = service.client();
    let timer = |namespace: &str, group: &str, at: &str| {
        json!({
            "namespace": namespace, "group": group, "execute_at": at, "callback": callback_to(&receiver.url("/"), &json!(1)),
        })
    };
    let far = "2099-01-01T00:00:00Z";
    for batch in [1_000, TIMERS - 1_000] {
        let timers: Vec<_> = (0..batch).map(|_| timer("shop", "campaign", far)).collect();
        let answer = client.send("POST", "/timers/batch", Some(&json!({"timers": timers}))).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    let mut neighbours = Vec::new();
    for (namespace, group) in [("shop", "Campaign"), ("default", "campaign")] {
        neighbours.push(client.create(&timer(namespace, group, far)).await);
    }
    let mut fired = timer("shop", "campaign", far);
    fired["execute_at"] = json!(null);
    fired.as_object_mut().expect("an object").remove("execute_at");
    fired["delay"] = json!("0s");
    let fired = client.create(&fired).await;
    client.wait_for_status(&fired, "completed").await;

    let shop = client.tenant("shop").await;
    let counts = async |path: &str| shop.get(path).await.json()["data"]["by_status"].clone();
    let before = counts("/groups/shop/campaign").await;
    assert_eq!((&before["pending"], &before["completed"], &before["canceled"]), (&json!(TIMERS), &json!(1), &json!(0)));
    let answer = shop.send("DELETE", "/groups/shop/campaign", None).await;
    assert_eq!(answer.json()["data"], json!({"matched": TIMERS, "canceled": TIMERS}), "{}", answer.text);
    let after = counts("/groups/shop/campaign").await;
    assert_eq!((&after["pending"], &after["completed"], &after["canceled"]), (&json!(0), &json!(1), &json!(TIMERS)));
    assert_eq!(shop.get("/groups/shop/unknown").await.json()["data"]["total"], 0);
    for id in &neighbours {
        assert_eq!(client.get(&format!("/timers/{id}")).await.json()["data"]["status"], "pending");
    }
    // A key sees the groups of its own namespaces.
    for method in ["GET", "DELETE"] {
        assert_eq!(shop.send(method, "/groups/default/campaign", None).await.status, 403, "{method}");
    }
    service.stop().await;
}
