//! How the service is, and what it did.

use http::Method;

use crate::{Client, Error, Filter, Json, Query, Request, by::encoded};

impl Client {
    /// `GET /healthz`; an error if it is not well.
    pub async fn health(&self) -> Result<Json, Error> {
        self.read("/healthz").await
    }

    /// What the key opens.
    pub async fn whoami(&self) -> Result<Json, Error> {
        self.read("/whoami").await
    }

    /// The processes that share the work.
    pub async fn cluster(&self) -> Result<Json, Error> {
        self.read("/cluster").await
    }

    pub async fn destinations(&self) -> Result<Json, Error> {
        self.read("/destinations").await
    }

    pub async fn namespaces(&self) -> Result<Json, Error> {
        self.read("/namespaces").await
    }

    /// What is due when: `from`, `to`, `step`, `namespace`.
    pub async fn due_stats(&self, query: &Query) -> Result<Json, Error> {
        self.read(&query.on("/stats/due")).await
    }

    /// What was fired when, and how late.
    pub async fn fired_stats(&self, query: &Query) -> Result<Json, Error> {
        self.read(&query.on("/stats/fired")).await
    }

    /// How many timers a group has, by status.
    pub async fn group(&self, namespace: &str, group: &str) -> Result<Json, Error> {
        self.read(&group_path(namespace, group)).await
    }

    /// Cancels the timers of a group that wait.
    pub async fn cancel_group(&self, namespace: &str, group: &str) -> Result<Json, Error> {
        Ok(self.call(&Request::new(Method::DELETE, group_path(namespace, group))).await?.data)
    }

    pub async fn operations(&self) -> Result<Json, Error> {
        self.read("/operations").await
    }

    pub async fn operation(&self, id: &str) -> Result<Json, Error> {
        self.read(&format!("/operations/{}", encoded(id))).await
    }

    pub async fn stop_operation(&self, id: &str) -> Result<Json, Error> {
        Ok(self.call(&Request::new(Method::DELETE, format!("/operations/{}", encoded(id)))).await?.data)
    }

    /// Every timer that matches, as the service writes it: `csv`, `json` or `ndjson`. Payloads are not part of it.
    pub async fn export(&self, filter: &Filter, format: &str) -> Result<hyper::body::Incoming, Error> {
        self.stream(&Request::get(filter.query().on(&format!("/timers.{format}")))).await
    }

    async fn read(&self, path: &str) -> Result<Json, Error> {
        Ok(self.call(&Request::get(path)).await?.data)
    }
}

fn group_path(namespace: &str, group: &str) -> String {
    format!("/groups/{}/{}", encoded(namespace), encoded(group))
}
