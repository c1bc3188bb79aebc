use std::{collections::HashMap, time::Duration};

use serde_json::Value;

use super::{Backend, Client, Link, Service, eventually};

pub const SHARDS: usize = 64;
/// After its last heartbeat a node counts as living for this long.
pub const LEASE_MICROS: i64 = 3_500_000;

const SHARED_WITHIN: Duration = Duration::from_secs(30);

/// Several services on one database, called `node-0`, `node-1` and so on.
pub struct Nodes {
    pub services: Vec<Service>,
    /// The way of each to the database, if they have ways of their own.
    pub links: Vec<Link>,
    /// The address of the database for each, if it is not that of the backend.
    urls: Vec<String>,
    pub backend: Backend,
}

impl Nodes {
    /// So many for quick timers, each with its share.
    pub async fn start(count: usize) -> Self {
        Self::start_on(Backend::postgres(), Vec::new(), count).await
    }

    /// The same, each over a link of its own.
    pub async fn start_over(count: usize, link: fn(&Backend) -> Link) -> Self {
        let backend = Backend::postgres();
        let links = (0..count).map(|_| link(&backend)).collect();
        Self::start_on(backend, links, count).await
    }

    pub async fn start_on(backend: Backend, links: Vec<Link>, count: usize) -> Self {
        let urls = links.iter().map(|link| link.url().to_owned()).collect();
        Self { services: Vec::new(), links, urls, backend }.with(count).await
    }

    /// One for each address of the same database.
    pub async fn start_at(backend: Backend, urls: Vec<String>) -> Self {
        let count = urls.len();
        Self { services: Vec::new(), links: Vec::new(), urls, backend }.with(count).await
    }

    async fn with(mut self, count: usize) -> Self {
        for _ in 0..count {
            self.begin_another();
        }
        for service in &mut self.services {
            service.wait_until_healthy().await;
        }
        self.wait_until_shared(count).await;
        self
    }

    /// Not yet waited for.
    pub fn begin_another(&mut self) {
        let number = self.services.len();
        let url = self.urls.get(number).map_or(self.backend.url(), String::as_str);
        let settings = [("MIN_DELAY", "0s"), ("NODE_NAME", &format!("node-{number}")), ("DATABASE_URL", url)];
        let service = Service::begin(&self.backend, &settings);
        self.services.push(service);
    }

    pub fn clients(&self) -> Vec<Client> {
        self.services.iter().map(Service::client).collect()
    }

    /// Waits until so many nodes hold all shards among them, in equal shares, as the first of them sees it.
    pub async fn wait_until_shared(&self, count: usize) {
        wait_until_shared(&self.services[0].client(), count).await;
    }

    pub async fn stop(mut self) {
        for service in &mut self.services {
            service.stop().await;
        }
    }
}

pub async fn wait_until_shared(client: &Client, count: usize) {
    eventually(&format!("{count} nodes share the shards"), SHARED_WITHIN, async || {
        let cluster = client.try_cluster().await?;
        let shares: Vec<usize> = cluster.nodes.values().filter(|node| node.takes_shards).map(|node| node.shards).collect();
        let is_even = shares.iter().max()? - shares.iter().min()? <= 1;
        (shares.len() == count && is_even && shares.iter().sum::<usize>() == SHARDS).then_some(())
    })
    .await;
}

/// What `/cluster` says of those that live.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// By id.
    pub nodes: HashMap<String, Node>,
    /// The id of the living node that holds each shard.
    pub owners: Vec<Option<String>>,
    pub epochs: Vec<i64>,
}

#[derive(Debug, Clone)]
pub struct Node {
    pub name: String,
    pub takes_shards: bool,
    pub shards: usize,
    pub skew_seconds: f64,
}

impl Cluster {
    pub fn parse(answer: &Value) -> Self {
        let list = |value: &Value| value.as_array().unwrap_or_else(|| panic!("a list in {answer}")).clone();
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("a text in {answer}")).to_owned();
        let living: HashMap<String, Node> = list(&answer["nodes"])
            .iter()
            .filter(|node| node["alive"] == true)
            .map(|node| {
                let shards = node["shards"].as_u64().and_then(|count| usize::try_from(count).ok()).expect("a number of shards");
                let seen = Node {
                    name: text(&node["name"]),
                    takes_shards: node["takes_shards"] == true,
                    shards,
                    skew_seconds: node["clock_skew_seconds"].as_f64().expect("a skew"),
                };
                (text(&node["id"]), seen)
            })
            .collect();
        let owner = |shard: &Value| shard["owner"].as_str().filter(|owner| living.contains_key(*owner)).map(str::to_owned);
        let shards = list(&answer["shards"]);
        Self {
            owners: shards.iter().map(owner).collect(),
            epochs: shards.iter().map(|shard| shard["epoch"].as_i64().expect("an epoch")).collect(),
            nodes: living,
        }
    }

    /// The name of the living node that holds the shard of this timer.
    pub fn owner_of(&self, timer: &str) -> Option<&str> {
        let owner = self.owners[shard_of(timer)].as_ref()?;
        Some(&self.nodes[owner].name)
    }

    /// The living node of this name. There may be another of the same name that has just been killed.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &Node> {
        self.nodes.values().filter(move |node| node.name == name)
    }

    pub fn are_all_held(&self) -> bool {
        self.owners.iter().all(Option::is_some)
    }
}

/// The last two bytes of its id say to which shard a timer belongs.
pub fn shard_of(timer: &str) -> usize {
    usize::from_str_radix(&timer[timer.len() - 4..], 16).expect("an id ends with hexadecimal digits") % SHARDS
}

impl Client {
    pub async fn cluster(&self) -> Cluster {
        self.try_cluster().await.expect("an answer of /cluster")
    }

    pub async fn try_cluster(&self) -> Option<Cluster> {
        let answer = self.try_send("GET", "/cluster", None).await.ok().filter(|answer| answer.status == 200)?;
        Some(Cluster::parse(&answer.json()["data"]))
    }

    /// What `/metrics` says of a metric, over all its labels.
    pub async fn metric_sum(&self, name: &str) -> f64 {
        let metrics = self.get("/metrics").await.text;
        let value = |line: &str| {
            let rest = line.strip_prefix(name)?;
            let rest = if rest.starts_with('{') { rest.rsplit_once('}')?.1 } else { rest };
            rest.strip_prefix(' ')?.parse::<f64>().ok()
        };
        metrics.lines().filter_map(value).sum::<f64>() + 0.0
    }
}
