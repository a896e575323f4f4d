//! Which sessions go when there are too many.

use std::time::SystemTime;

use super::{FileStore, Kept, is_id};

impl FileStore {
    /// The sessions of all owners that are too many or too old, the oldest first. What cannot be looked at is not among
    /// them.
    pub fn excess(&self, kept: Kept) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(&self.directory) else { return Vec::new() };
        let mut logs: Vec<(SystemTime, u64, String)> = entries
            .flatten()
            .filter_map(|entry| {
                let id = entry.file_name().to_str()?.strip_suffix(".log").filter(|id| is_id(id))?.to_owned();
                let file = entry.metadata().ok()?;
                Some((file.modified().ok()?, file.len(), id))
            })
            .collect();
        logs.sort_unstable();
        let oldest = kept.age.and_then(|age| SystemTime::now().checked_sub(age));
        let (mut count, mut bytes) = (logs.len(), logs.iter().map(|(_, length, _)| length).sum::<u64>());
        let mut excess = Vec::new();
        for (modified, length, id) in logs {
            let is_old = oldest.is_some_and(|oldest| modified < oldest);
            // The newest stays, however large it is.
            if !is_old && (count <= 1 || (count <= kept.sessions && bytes <= kept.bytes)) {
                break;
            }
            count -= 1;
            bytes -= length;
            excess.push(id);
        }
        excess
    }
}
