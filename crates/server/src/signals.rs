use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The first SIGTERM or ctrl-C asks everything to stop; the second one does not wait for it.
pub fn stop_on_signal(stop: CancellationToken) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if stop.is_cancelled() {
                std::process::exit(1);
            }
            stop.cancel();
            crate::notify::stopping();
            tracing::info!("stopping: no new claims, finishing what is under way; once more to stop at once");
        }
    });
    Ok(())
}
