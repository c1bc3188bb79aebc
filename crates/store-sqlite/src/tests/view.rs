use domain::Status;

use super::{Place, one_in_each_status};

#[tokio::test]
async fn people_can_read_every_timer_with_a_shell() {
    let place = Place::new();
    let store = place.open();
    let timers = one_in_each_status(&store).await;
    let shell = place.shell();
    let sql = "SELECT status, created_at, execute_at, executed_at, updated_at, attempt, last_error, callback_type, callback_config, namespace
               FROM timers WHERE id = ?1";
    for timer in timers {
        let row: Vec<Option<String>> = shell
            .query_row(sql, [timer.id().to_string()], |row| {
                (0..10).map(|column| row.get::<_, rusqlite::types::Value>(column).map(text)).collect()
            })
            .unwrap();
        let second = timer.id().as_uuid().as_bytes()[15];
        let finished = timer.status.is_finished();
        let executed = matches!(timer.status, Status::Completed | Status::Failed | Status::Expired);
        let later = || "2025-06-15T13:00:00.000000Z".to_owned();
        let expected = [
            Some(timer.status.to_string()),
            Some("2025-06-15T12:00:00.000000Z".to_owned()),
            Some(format!("2025-06-15T12:00:0{second}.000000Z")),
            executed.then(later),
            Some(if finished || timer.status == Status::Paused { later() } else { "2025-06-15T12:00:00.000000Z".to_owned() }),
            Some(timer.attempt.to_string()),
            timer.last_error.clone(),
            Some("http".to_owned()),
            Some(timer.definition.callback.to_stored()),
            Some("default".to_owned()),
        ];
        assert_eq!(row, expected, "{}", timer.status);
    }
}

fn text(value: rusqlite::types::Value) -> Option<String> {
    match value {
        rusqlite::types::Value::Null => None,
        rusqlite::types::Value::Integer(number) => Some(number.to_string()),
        rusqlite::types::Value::Text(text) => Some(text),
        other => panic!("{other:?} is nothing to read"),
    }
}
