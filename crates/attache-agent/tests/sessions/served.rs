//! The agent in a process of its own.

use std::process::Stdio;

use tokio::process::{Child, Command};

use crate::help::example;
use crate::support::{Chat, Person, World};

/// A client of an agent in another process.
pub(crate) struct Served {
    pub(crate) chat: Chat,
    pub(crate) child: Child,
}

impl Served {
    /// Starts the agent of a world, with some more variables.
    pub(crate) async fn start(world: &World, person: Person, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(example("serve"));
        command.envs(variables.iter().copied());
        Served::run(command, world, person).await
    }

    /// Starts an agent that may not write files of more than so many blocks.
    pub(crate) async fn start_limited(world: &World, person: Person, blocks: u32) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\""), "sh"]).arg(example("serve"));
        Served::run(command, world, person).await
    }

    async fn run(mut command: Command, world: &World, person: Person) -> Self {
        let config = &world.config;
        command.arg(&config.config_dir).arg(&config.state_dir).arg(config.model.as_ref().unwrap());
        command.args(&config.base_url);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let chat = Chat::connect_to(person, &world.root, |end| {
            let (mut from_client, mut to_client) = tokio::io::split(end);
            tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut stdin).await });
            tokio::spawn(async move {
                let _ = tokio::io::copy(&mut stdout, &mut to_client).await;
                tokio::io::AsyncWriteExt::shutdown(&mut to_client).await
            });
        })
        .await;
        Served { chat, child }
    }

    /// Ends the process without a word.
    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }
}
