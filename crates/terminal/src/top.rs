//! `timer top`: how the service does, on the full screen.

use std::time::Duration;

use clap::Args;
use ratatui::{
    Terminal,
    backend::TestBackend,
    crossterm::event::{self, Event, KeyCode, KeyModifiers},
};
use tokio::time::Instant;

use crate::{ConnectionOptions, Context, Failure, output::print, overview::Overview};

const GLANCE: Duration = Duration::from_millis(50);
/// The size of a frame that is printed.
const WIDTH: u16 = 120;
const HEIGHT: u16 = 36;

#[derive(Debug, Clone, Args)]
pub struct TopOptions {
    /// Print one frame, and stop
    #[arg(long)]
    pub once: bool,
    /// How often it is read
    #[arg(long, value_name = "DURATION", value_parser = crate::connection::span, default_value = "1s")]
    pub every: domain::Span,
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

pub async fn run(options: &TopOptions, context: &Context) -> Result<(), Failure> {
    let client = options.connection.client(context)?;
    let first = Overview::read(&client).await?;
    if options.once {
        return print(format_args!("{}", frame(&first)?));
    }
    if !context.surroundings.is_terminal {
        return Err(Failure::usage("standard output is no terminal: see --once"));
    }
    let mut terminal = ratatui::try_init()?;
    let mut shown = Ok(first);
    let result = loop {
        let overview = match shown {
            Ok(overview) => overview,
            Err(failure) => break Err(failure),
        };
        if let Err(error) = terminal.draw(|frame| overview.draw(frame)) {
            break Err(Failure::from(error));
        }
        match is_over(options.every.as_duration(), &mut terminal, &overview).await {
            Ok(true) => break Ok(()),
            Ok(false) => {}
            Err(failure) => break Err(failure),
        }
        shown = Overview::read(&client).await;
    };
    ratatui::restore();
    result
}

/// Waits for the next reading. Says whether it is to end.
async fn is_over(pause: Duration, terminal: &mut ratatui::DefaultTerminal, overview: &Overview) -> Result<bool, Failure> {
    let until = Instant::now() + pause;
    while Instant::now() < until {
        while event::poll(Duration::ZERO)? {
            match event::read()? {
                Event::Key(key) => {
                    let is_interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
                    if is_interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
                        return Ok(true);
                    }
                }
                Event::Resize(..) => _ = terminal.draw(|frame| overview.draw(frame))?,
                _ => {}
            }
        }
        tokio::time::sleep(GLANCE).await;
    }
    Ok(false)
}

/// One frame as text.
fn frame(overview: &Overview) -> Result<String, Failure> {
    let cannot_draw = |error| Failure::unexpected(format!("nothing can be drawn: {error}"));
    let mut terminal = Terminal::new(TestBackend::new(WIDTH, HEIGHT)).map_err(cannot_draw)?;
    terminal.draw(|frame| overview.draw(frame)).map_err(cannot_draw)?;
    let buffer = terminal.backend().buffer();
    let symbol = |x, y| buffer.cell((x, y)).map_or(" ", |cell| cell.symbol());
    let lines = (0..HEIGHT).map(|y| (0..WIDTH).map(|x| symbol(x, y)).collect::<String>().trim_end().to_owned());
    Ok(lines.collect::<Vec<_>>().join("\n").trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_frame_shows_everything() {
        let overview = Overview {
            url: "http://a".to_owned(),
            at: "then".to_owned(),
            counts: vec![("pending".to_owned(), 3)],
            fired: vec![json!({"fired": 7, "failed": 1, "retried": 2, "lateness_p50_ms": 1.25})],
            due: vec![1, 0, 2],
            next: vec![json!({"time_left": 90, "namespace": "shop", "key": "order-7", "id": "i"})],
            destinations: vec![json!({"destination": "a:80", "health": "failing", "last_error": "timeout"})],
            nodes: vec![json!({"name": "n1", "alive": true, "shards": 1})],
            oldest_overdue_seconds: 0.25,
        };
        let shown = frame(&overview).unwrap();
        for part in [
            "http://a  then  the oldest waiting timer is 0.250 s late",
            "3 pending",
            "1m 30s",
            "order-7",
            "failing",
            "n1",
            "alive",
            "fired in the last hour: 7 (1 failed, 2 retried)",
        ] {
            assert!(shown.contains(part), "{part} in\n{shown}");
        }
    }
}
