//! How much an event that does not end, or the body of an error, has taken.
//!
//! `genai` gathers both without a limit, and shows us neither before it is whole. What can be seen from outside is that
//! this program grows while piece after piece arrives and no event is complete. Ordinary answers complete an event with
//! nearly every piece, so nothing is looked at for them; and a program that grows for another reason meanwhile does not
//! take an answer down with it, unless that is stuck in the middle of an event as well.

/// How many pieces may arrive without a complete event before the memory is looked at. A piece has some 400 KiB at most.
const PIECES: u32 = 16;

/// How much the program may grow meanwhile. The largest events there are, of calls with whole files in them, have a
/// twentieth of that.
const MOST_GROWTH: usize = 24 << 20;

/// What has arrived since the last complete event.
#[derive(Debug, Default)]
pub(super) struct Unfinished {
    pieces: u32,
    /// The memory of this program when it was looked at first.
    before: Option<usize>,
}

impl Unfinished {
    /// Notes that a piece has arrived; says whether it was one too many.
    pub(super) fn is_too_long(&mut self) -> bool {
        self.pieces = self.pieces.saturating_add(1);
        if self.pieces < PIECES {
            return false;
        }
        let now = resident();
        let before = self.before.get_or_insert(now);
        // What others give back is not to hide what this takes.
        *before = now.min(*before);
        now - *before > MOST_GROWTH
    }
}

/// The bytes of memory that this program has, or 0 where that cannot be asked.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    // Total and resident pages. As a file of the kernel it never blocks.
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = pages.split_ascii_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok());
    // SAFETY: asks for a number.
    let size = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
    pages.unwrap_or_default().saturating_mul(size)
}

#[cfg(not(target_os = "linux"))]
fn resident() -> usize {
    0
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn growth_while_no_event_ends_is_noticed() {
        let mut unfinished = Unfinished::default();
        for _ in 0..=PIECES {
            unfinished.is_too_long();
        }
        // Written to, so that it is there. Far more, because other tests give memory back meanwhile.
        let ballast = vec![1u8; 10 * MOST_GROWTH];
        assert!(unfinished.is_too_long());
        drop(ballast);
        assert!(!Unfinished::default().is_too_long(), "one piece is not too long, whatever the program has");
    }
}
