//! Tests of what is kept while programs run.

use std::fs;

use super::*;

/// A project, and what is kept of its changes.
struct Project {
    directory: tempfile::TempDir,
    files: Files,
    inner: Inner,
}

impl Project {
    /// One with these files, which all hold `0`.
    fn with(names: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let top = attache_host::paths::canonicalize(directory.path()).unwrap().join("project");
        for name in names {
            fs::create_dir_all(top.join(name).parent().unwrap()).unwrap();
            fs::write(top.join(name), "0").unwrap();
        }
        let files = Files::open(&top, &[]).unwrap().without_links();
        let inner = Checkpoints::open(directory.path().join("kept")).inner;
        let inner = Arc::into_inner(inner).unwrap().into_inner().unwrap();
        Project { directory, files, inner }
    }

    fn path(&self, name: &str) -> PathBuf {
        attache_host::paths::canonicalize(self.directory.path()).unwrap().join("project").join(name)
    }

    /// Somebody writes a file, or a program does.
    fn put(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    /// The agent writes a file.
    fn edit(&mut self, name: &str, content: &str) {
        let path = self.path(name);
        self.inner.keep_paths(&self.files, vec![Touched { path, was_asked: false, unsaved: None }]);
        self.put(name, content);
        self.inner.settle(&self.files);
    }

    /// The agent moves a directory.
    fn rename(&mut self, from: &str, to: &str) {
        let (from, to) = (self.path(from), self.path(to));
        self.inner.keep_move(&self.files, from.clone(), to.clone(), false);
        fs::rename(from, to).unwrap();
        self.inner.settle(&self.files);
    }

    fn start_program(&mut self) {
        self.inner.open_window(&self.files);
    }

    fn end_programs(&mut self) {
        self.inner.programs = 0;
        self.inner.settle(&self.files);
    }

    /// Every step with the contents before and after it, and `?` where it is not known to be the agent's.
    fn steps(&self) -> Vec<String> {
        let content = |state: &State| match state {
            State::File { content, .. } => match self.inner.contents.read(content) {
                Ok(bytes) => String::from_utf8(bytes).unwrap(),
                Err(error) => error.to_string(),
            },
            State::Nothing => "nothing".into(),
            other => format!("{other:?}"),
        };
        let top = self.path("");
        let name = |path: &Path| path.strip_prefix(&top).unwrap().display().to_string();
        let step = |step: &Step| match step {
            Step::Change { path, before, after, while_running, .. } => {
                let after = after.as_ref().map_or("?".into(), content);
                format!("{} {} {after}{}", name(path), content(before), if *while_running { " ?" } else { "" })
            }
            Step::Move { from, to, .. } => format!("{} is {}", name(from), name(to)),
        };
        self.inner.turns.0.iter().flat_map(|turn| &turn.steps).map(step).collect()
    }
}

#[test]
fn what_the_agent_changes_itself_while_a_program_runs_is_its_own() {
    let mut project = Project::with(&["edited", "others", "dir/file"]);
    project.start_program();
    project.edit("edited", "1");
    project.edit("edited", "2");
    project.edit("new", "1");
    project.rename("dir", "moved");
    project.put("others", "1");
    project.end_programs();
    assert_eq!(project.steps(), ["edited 0 2", "new nothing 1", "dir is moved", "others 0 1 ?"]);
}

#[test]
fn what_others_do_between_the_agents_changes_is_a_step_of_its_own() {
    let mut project = Project::with(&["file"]);
    project.edit("file", "1");
    project.put("file", "2");
    project.edit("file", "3");
    assert_eq!(project.steps(), ["file 0 1", "file 2 3"], "somebody else's, so it is not kept as a step");
    project.start_program();
    project.put("file", "4");
    project.edit("file", "5");
    project.put("file", "6");
    project.end_programs();
    let running = ["file 0 1", "file 2 3", "file 3 4 ?", "file 4 5", "file 5 6 ?"];
    assert_eq!(project.steps(), running);
}

#[test]
fn room_is_not_made_at_the_cost_of_what_is_being_written_down() {
    let mut project = Project::with(&["a", "b"]);
    project.put("b", "before");
    project.inner.turn = 1;
    project.edit("old", "old");
    // A file without content on the disk stands for a session that has kept much.
    let contents = project.inner.directory.join("contents");
    fs::File::create(contents.join("0".repeat(64))).unwrap().set_len((256 << 20) - 5).unwrap();
    project.inner.contents = Contents::new(contents);
    project.inner.turn = 2;
    project.start_program();
    project.put("a", "1");
    project.put("b", "2");
    project.end_programs();
    assert_eq!(project.steps(), ["a 0 1 ?", "b before 2 ?"], "the older turn is forgotten");
}
