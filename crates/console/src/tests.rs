//! What holds for every page.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use domain::{Caller, Rights, Span, Status};

use crate::{
    ConsoleConfig, ConsoleMode, Development, RateCheck,
    rig::{KEY, Rig, config, request},
};

const PAGES: [&str; 8] = [
    "/console",
    "/console/timers",
    "/console/failed",
    "/console/operations",
    "/console/destinations",
    "/console/namespaces",
    "/console/about",
    "/console/preferences",
];

#[tokio::test]
async fn no_page_is_shown_without_a_session() {
    let rig = Rig::new();
    let id = rig.timer("tulip", "a").await;
    let one = format!("/console/timers/{id}");
    for path in PAGES.iter().copied().chain([
        one.as_str(),
        "/console/keys",
        "/console/cluster",
        "/console/timers.csv",
        "/console/live",
        "/console/nowhere",
    ]) {
        for cookie in ["", "timer=", "timer=administrator.1893456000000000.AAAA", "__Host-timer=x"] {
            let reply = rig.get_as(cookie, path).await;
            assert_eq!(reply.status, 303, "{path} {cookie}");
            assert!(reply.headers["location"].to_str().unwrap().starts_with("/console/login"), "{path}");
            assert!(!reply.text.contains("tulip"));
        }
    }
    let reply = rig.post_as("", &format!("{one}/cancel"), "").await;
    assert!(reply.status == 401 && reply.text.contains("You were logged out"), "{}", reply.text);
    assert_eq!(rig.commands.get(id).await.unwrap().status, Status::Pending);
}

#[tokio::test]
async fn a_key_logs_in_and_is_led_to_where_it_wanted() {
    let rig = Rig::new();
    let asked = rig.get_as("", "/console/timers?q=ns:a").await;
    let login = asked.headers["location"].to_str().unwrap();
    assert_eq!(login, "/console/login?next=%2Fconsole%2Ftimers%3Fq%3Dns%3Aa");
    let page = rig.get_as("", login).await;
    assert!(page.status == 200 && page.text.contains("value=\"/console/timers?q=ns:a\""), "{}", page.text);
    let form = format!("key={KEY}&next=%2Fconsole%2Ftimers%3Fq%3Dns%3Aa");
    let reply = rig.post_as("", "/console/login", &form).await;
    assert_eq!((reply.status.as_u16(), reply.headers["location"].to_str().unwrap()), (303, "/console/timers?q=ns:a"));
    let set = reply.headers["set-cookie"].to_str().unwrap();
    for part in ["timer=", "; HttpOnly", "; SameSite=Lax", "; Max-Age=43200", "; Path=/console"] {
        assert!(set.contains(part), "{part}: {set}");
    }
    assert!(!set.contains(KEY) && !set.contains("Secure"));
    assert_eq!(rig.get_as(&reply.cookie(), "/console").await.status, 200);
    let led_away = rig.post_as("", "/console/login", &format!("key={KEY}&next=//evil.example")).await;
    assert_eq!(led_away.headers["location"], "/console");
    rig.clock.advance(Span::from_secs(30 * 24 * 60 * 60));
    assert_eq!(rig.get_as(&reply.cookie(), "/console").await.status, 200, "the clock of the timers ends no session");
    rig.machine.advance(Span::from_secs(12 * 60 * 60));
    assert_eq!(rig.get_as(&reply.cookie(), "/console").await.status, 303, "a login lasts 12 hours");
}

#[tokio::test]
async fn five_wrong_keys_close_the_login_for_a_minute() {
    let rig = Rig::new();
    for _ in 0..5 {
        let reply = rig.log_in("wrong").await;
        assert!(reply.status == 403 && reply.text.contains("not a valid API key"), "{}", reply.text);
    }
    for key in ["wrong", KEY] {
        let reply = rig.log_in(key).await;
        assert_eq!((reply.status.as_u16(), reply.headers["retry-after"].to_str().unwrap()), (429, "60"));
    }
    rig.machine.advance(Span::from_secs(60));
    assert_eq!(rig.log_in(KEY).await.status, 303);
}

#[tokio::test]
async fn a_key_that_asks_too_often_waits() {
    let rate: RateCheck = Arc::new(|caller| match caller {
        Caller::Administrator => Ok(()),
        Caller::Holder(_) => Err(Duration::from_millis(1_500)),
    });
    let rig = Rig::configured(ConsoleConfig { rate, ..config() });
    let (_, holder) = rig.holder(&["a"], Rights::Write).await;
    let refused = rig.get_as(&holder, "/console/timers").await;
    assert_eq!((refused.status.as_u16(), refused.headers["retry-after"].to_str().unwrap()), (429, "2"));
    assert!(refused.text.contains("Too many requests with this key"), "{}", refused.text);
    assert_eq!(rig.post_as(&holder, "/console/timers/new", "delay=1h").await.status, 429);
    assert_eq!(rig.get("/console/timers").await.status, 200, "another key does not");
}

#[tokio::test]
async fn a_form_of_another_origin_changes_nothing() {
    let rig = Rig::new();
    let id = rig.timer("k", "a").await;
    let path = format!("/console/timers/{id}/cancel");
    for (name, value) in
        [("sec-fetch-site", "cross-site"), ("sec-fetch-site", "none"), ("origin", "https://evil.example"), ("x", "y")]
    {
        let request = request("POST", &path).header("cookie", &rig.cookie).header(name, value);
        let request = request.header("content-type", "application/x-www-form-urlencoded").body(Body::empty()).unwrap();
        let reply = rig.send(request).await;
        assert!(reply.status == 403 && reply.text.contains("did not come from a page of this console"), "{name} {value}");
    }
    assert_eq!(rig.commands.get(id).await.unwrap().status, Status::Pending);
}

#[tokio::test]
async fn a_link_of_another_site_opens_the_page() {
    let rig = Rig::new();
    rig.timer("tulip", "a").await;
    let led =
        |cookie: &str| request("GET", "/console/timers?q=ns:a").header("sec-fetch-site", "cross-site").header("cookie", cookie);
    let opened = rig.send(led(&rig.cookie).body(Body::empty()).unwrap()).await;
    assert!(opened.status == 200 && opened.text.contains("tulip"), "{}", opened.text);
    let stranger = rig.send(led("").body(Body::empty()).unwrap()).await;
    assert_eq!(
        (stranger.status.as_u16(), stranger.headers["location"].to_str().unwrap()),
        (303, "/console/login?next=%2Fconsole%2Ftimers%3Fq%3Dns%3Aa")
    );
}

#[tokio::test]
async fn a_key_that_may_only_read_changes_nothing() {
    let rig = Rig::new();
    let id = rig.timer("k", "a").await;
    let (_, cookie) = rig.holder(&["a"], Rights::Read).await;
    let path = format!("/console/timers/{id}");
    let page = rig.get_as(&cookie, &path).await;
    assert!(page.text.contains("This key may only read") && !page.text.contains("data-dialog"), "{}", page.text);
    for action in ["fire", "retry", "cancel", "pause", "resume"] {
        let reply = rig.post_as(&cookie, &format!("{path}/{action}"), "").await;
        assert!(reply.status == 403 && reply.text.contains("This key may only read"), "{action} {}", reply.text);
        assert_eq!(rig.get_as(&cookie, &format!("{path}/{action}")).await.status, 403);
    }
    assert_eq!(rig.commands.get(id).await.unwrap().revision, 1);
}

#[tokio::test]
async fn shortcuts_are_told_for_the_pages_that_a_key_has() {
    let rig = Rig::new();
    let (_, holder) = rig.holder(&["a"], Rights::Write).await;
    let of_page = |key: &str| format!("<kbd>g</kbd> <kbd>{key}</kbd>");
    for (cookie, is_administrator) in [(&rig.cookie, true), (&holder, false)] {
        let page = rig.get_as(cookie, "/console/preferences").await.text;
        for (key, is_told) in [("o", true), ("n", true), ("k", is_administrator), ("c", is_administrator), ("i", false)] {
            assert_eq!(page.contains(&of_page(key)), is_told, "{key}: {page}");
        }
    }
}

#[tokio::test]
async fn a_key_sees_nothing_of_other_namespaces() {
    let rig = Rig::new();
    let other = rig.timer("tulip", "garden").await;
    rig.timer("own", "a").await;
    let (_, cookie) = rig.holder(&["a"], Rights::Write).await;
    for path in PAGES {
        let page = rig.get_as(&cookie, path).await;
        assert!(page.status == 200 && !page.text.contains("tulip") && !page.text.contains("garden"), "{path} {}", page.text);
    }
    assert_eq!(rig.get_as(&cookie, &format!("/console/timers/{other}")).await.status, 404);
    assert_eq!(rig.post_as(&cookie, &format!("/console/timers/{other}/cancel"), "").await.status, 404);
    assert_eq!(rig.get_as(&cookie, "/console/timers?q=ns:garden").await.status, 403);
    assert!(!rig.get_as(&cookie, "/console/about").await.text.contains("8080"), "settings are the administrator's");
}

#[tokio::test]
async fn revoking_a_key_ends_its_session_within_a_second() {
    let rig = Rig::new();
    let (id, cookie) = rig.holder(&["a"], Rights::Write).await;
    assert_eq!(rig.get_as(&cookie, "/console").await.status, 200);
    rig.commands.revoke_key(id).await.unwrap();
    rig.clock.advance(Span::from_secs(1));
    assert_eq!(rig.get_as(&cookie, "/console").await.status, 303);
}

#[tokio::test]
async fn every_answer_forbids_what_a_page_does_not_need() {
    let rig = Rig::new();
    for path in ["/console", "/console/login", "/console/nowhere", "/console/assets/console.css", "/console/assets/none"] {
        let reply = rig.get(path).await;
        let policy = reply.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(
            (&reply.headers["x-content-type-options"], &reply.headers["referrer-policy"]),
            (&"nosniff".parse().unwrap(), &"same-origin".parse().unwrap())
        );
        assert!(!reply.text.contains(" style=") && !reply.text.contains("<style") && !reply.text.contains(" onclick="), "{path}");
    }
}

#[tokio::test]
async fn a_read_only_console_changes_nothing_even_for_the_administrator() {
    let rig = Rig::configured(ConsoleConfig { mode: ConsoleMode::ReadOnly, ..config() });
    let id = rig.timer("k", "a").await;
    assert_eq!(rig.post(&format!("/console/timers/{id}/cancel"), "").await.status, 403);
    assert_eq!(rig.commands.get(id).await.unwrap().status, Status::Pending);
    assert_eq!(rig.post("/console/preferences", "theme=dark&back=/console").await.status, 303);
    let (key, _) = rig.holder(&["a"], Rights::Read).await;
    let (timer, key) = (format!("/console/timers/{id}"), format!("/console/keys/{key}/revoke"));
    for form in
        ["/console/timers/new", "/console/operations/new?do=cancel", &format!("{timer}/edit"), &format!("{timer}/fire"), &key]
    {
        let reply = rig.get(form).await;
        assert!(reply.status == 403 && reply.text.contains("CONSOLE=read-only"), "{form}: {}", reply.text);
    }
    assert_eq!(rig.get(&format!("{timer}/verify")).await.status, 200, "what changes nothing stays");
}

#[tokio::test]
async fn preferences_are_kept_in_cookies() {
    let rig = Rig::new();
    let reply = rig.post("/console/preferences", "theme=dark&zone=Europe/Berlin&density=pink&back=/console/timers").await;
    assert_eq!(reply.headers["location"], "/console/timers");
    let set: Vec<_> = reply.headers.get_all("set-cookie").iter().map(|value| value.to_str().unwrap()).collect();
    assert!(
        set.len() == 3 && set[0].starts_with("timer-theme=dark;") && set[1].starts_with("timer-zone=Europe/Berlin;"),
        "{set:?}"
    );
    let page = rig.get_as(&format!("{}; timer-theme=dark", rig.cookie), "/console").await;
    assert!(page.text.contains("data-theme=\"dark\""));
}

#[tokio::test]
async fn times_are_in_the_zone_that_was_named_without_any_script() {
    let rig = Rig::new();
    let id = rig.timer("k", "a").await;
    for (zone, due) in [
        ("UTC", "1 Jan 2030 01:00:00.001<"),
        ("Asia/Tokyo", "1 Jan 2030 10:00:00.001<"),
        ("America/New_York", "31 Dec 2029 20:00:00.001<"),
        // The zone of a browser, and none.
        ("local", "1 Jan 2030 01:00:00.001<"),
        ("Europe/Atlantis", "1 Jan 2030 01:00:00.001<"),
    ] {
        let page = rig.get_as(&format!("{}; timer-zone={zone}", rig.cookie), &format!("/console/timers/{id}")).await;
        assert!(page.text.contains(due), "{zone}: {}", page.text);
    }
}

#[tokio::test]
async fn the_link_of_a_development_server_logs_in_once() {
    let development = Development { receiver: "http://127.0.0.1:8081".to_owned(), login_token: Some("once-only".to_owned()) };
    let rig = Rig::configured(ConsoleConfig { development: Some(development), ..config() });
    assert_eq!(rig.post_as("", "/console/login", "once=wrong").await.status, 403);
    let reply = rig.post_as("", "/console/login", "once=once-only&key=").await;
    assert_eq!(reply.status, 303);
    let first = rig.post_as(&reply.cookie(), "/console/first", "").await;
    assert!(first.headers["location"].to_str().unwrap().ends_with("?done=create"), "{}", first.text);
    assert_eq!(rig.post_as("", "/console/login", "once=once-only").await.status, 403);
}
