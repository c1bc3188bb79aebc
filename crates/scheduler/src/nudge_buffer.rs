use store::DueEntry;

/// What other nodes should hear of soon. Best effort: beyond its capacity, what comes is dropped, and the sweep finds it.
#[derive(Debug, Default)]
pub struct NudgeBuffer {
    entries: Vec<DueEntry>,
}

/// How many entries wait at most while the last ones are being told.
const ENTRIES_MAX: usize = 8192;

impl NudgeBuffer {
    /// Says how many were dropped, because the buffer was full.
    pub fn put(&mut self, entries: impl Iterator<Item = DueEntry>) -> usize {
        let mut dropped = 0;
        for entry in entries {
            if self.entries.len() < ENTRIES_MAX {
                self.entries.push(entry);
            } else {
                dropped += 1;
            }
        }
        dropped
    }

    pub fn take(&mut self) -> Vec<DueEntry> {
        std::mem::take(&mut self.entries)
    }
}

#[cfg(test)]
mod tests {
    use domain::{Destination, TimerId, Timestamp};

    use super::*;

    #[test]
    fn what_finds_no_room_is_dropped() {
        let entry = DueEntry { at: Timestamp::from_micros(1), id: TimerId::LAST, destination: Destination(1) };
        let mut nudge_buffer = NudgeBuffer::default();
        assert_eq!(nudge_buffer.put(std::iter::repeat_n(entry, ENTRIES_MAX + 3)), 3);
        assert_eq!(nudge_buffer.take().len(), ENTRIES_MAX);
        assert_eq!(nudge_buffer.take(), []);
    }
}
