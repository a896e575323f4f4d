//! A policy in plain words.

use std::{fmt, path::Path};

use serde::Serialize;

use super::{
    LIMITS, Network, Policy, Sandbox, SandboxError,
    view::{self, Access, Row, Why},
};

/// What a policy means on this machine, for a person or, as JSON, for a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// Whether the kernel enforces it, and if not, why.
    pub enforced: bool,
    /// Why it is not enforced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What can be read, with all beneath, but for what is hidden.
    pub readable: Vec<String>,
    /// What can be changed, with all beneath.
    pub writable: Vec<String>,
    /// What can be changed in a private layer, with all beneath, and stays as it is for everybody else.
    pub layers: Vec<String>,
    /// What cannot be changed inside of that.
    pub protected: Vec<String>,
    /// What can neither be read nor changed. Only what is there.
    pub hidden: Vec<String>,
    /// Whom a process can talk to, in sentences.
    pub reachable: Vec<String>,
    /// The variables that a process gets, by name, and with their values those that stand in for hidden settings. Whoever
    /// starts the process knows the former.
    pub variables: Vec<String>,
    /// What this machine does not enforce.
    pub gaps: Vec<String>,
    /// What no machine enforces.
    pub limits: Vec<String>,
}

impl Explanation {
    /// Explains a policy, together with what came of making it.
    pub fn new(policy: &Policy, made: Result<&Sandbox, &SandboxError>) -> Self {
        let rows = view::rows(policy);
        let list = |wanted: &dyn Fn(&Row) -> bool| {
            rows.iter().filter(|row| wanted(row)).map(|row| row.path.display().to_string()).collect::<Vec<_>>()
        };
        let is_there = |row: &Row| row.path.symlink_metadata().is_ok();
        let is_plain = |row: &Row| !matches!(row.why, Why::Pinned | Why::Protected | Why::Layer);
        Self {
            enforced: made.is_ok(),
            reason: made.err().map(ToString::to_string),
            readable: list(&|row| row.access == Access::Read && is_plain(row)),
            writable: list(&|row| row.access == Access::Write && is_plain(row)),
            layers: list(&|row| row.why == Why::Layer),
            protected: list(&|row| row.why == Why::Protected),
            // Of the devices, which can be listed, those that can be used are told.
            hidden: list(&|row| row.access == Access::Hidden && row.why != Why::Device && is_there(row)),
            reachable: reachable(policy),
            variables: policy.variables.iter().chain(&policy.private_variables).map(variable).collect(),
            gaps: made.map(|sandbox| sandbox.gaps().to_vec()).unwrap_or_default(),
            limits: LIMITS.map(str::to_owned).into(),
        }
    }
}

fn variable((name, value): &(String, String)) -> String {
    format!("{name}={value}")
}

fn reachable(policy: &Policy) -> Vec<String> {
    let mut reachable = Vec::new();
    match policy.network {
        Network::Offline => reachable.push("no network, and no sockets".to_owned()),
        Network::Open => {
            reachable.push("the network, and servers on this machine".to_owned());
            reachable.push("sockets inside of what can be changed, but for those under the temporary directory".into());
            let named = policy.sockets.iter().map(|path: &std::path::PathBuf| show(path));
            reachable.extend(named);
        }
    }
    reachable.push("of the devices those above, and no others".into());
    reachable.push("signals and memory of its own processes only".into());
    reachable
}

fn show(path: &Path) -> String {
    format!("the socket `{}`", path.display())
}

/// In paragraphs, each with a heading.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            None => f.write_str("The kernel enforces this on every program that runs in it.\n")?,
            Some(reason) => writeln!(f, "This cannot be enforced here: {reason}")?,
        }
        let variables = match &self.variables[..] {
            [] => Vec::new(),
            names => vec![names.join(", ")],
        };
        let sections = [
            ("Can be read, with all beneath, but for what is hidden", &self.readable),
            ("Can be changed, with all beneath", &self.writable),
            ("Can be changed in a private layer; what is there stays as it is", &self.layers),
            ("Cannot be changed inside of that", &self.protected),
            ("Hidden: neither read nor changed", &self.hidden),
            ("Can be reached", &self.reachable),
            ("Variables that are passed, or set in place of something hidden or shared", &variables),
            ("Not enforced on this machine", &self.gaps),
            ("Not enforced on any machine", &self.limits),
        ];
        for (heading, lines) in sections.into_iter().filter(|(_, lines)| !lines.is_empty()) {
            writeln!(f, "\n{heading}:")?;
            for line in lines {
                writeln!(f, "  {line}")?;
            }
        }
        Ok(())
    }
}
