//! Which sessions go when there are too many.

use std::collections::BTreeMap;
use std::time::SystemTime;

use super::{FileStore, Kept, is_id, owner_of};

/// A log: when it was added to, how long it is, and whose session it is.
type Found = (SystemTime, u64, String);

impl FileStore {
    /// The sessions that are too many or too old, of each owner the oldest first. What one keeps is nothing to another. What
    /// cannot be looked at is not among them.
    pub fn excess(&self, kept: Kept) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(&self.directory) else { return Vec::new() };
        let mut owners: BTreeMap<String, Vec<Found>> = BTreeMap::new();
        for entry in entries.flatten() {
            let found = || {
                let id = entry.file_name().to_str()?.strip_suffix(".log").filter(|id| is_id(id))?.to_owned();
                let file = entry.metadata().ok()?;
                Some((file.modified().ok()?, file.len(), id))
            };
            if let Some(found) = found() {
                owners.entry(owner_of(&entry.path())).or_default().push(found);
            }
        }
        owners.into_values().flat_map(|logs| excess_of(logs, kept)).collect()
    }
}

/// The same of one owner.
fn excess_of(mut logs: Vec<Found>, kept: Kept) -> Vec<String> {
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
