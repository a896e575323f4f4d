//! Sits at a terminal with `attache chat` on it: types, and reads the screen back.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Home, open_terminal, scripted};

pub const ENTER: &str = "\r";
pub const ESC: &str = "\x1b";
pub const TAB: &str = "\t";
pub const SHIFT_TAB: &str = "\x1b[Z";
pub const UP: &str = "\x1b[A";
pub const DOWN: &str = "\x1b[B";
pub const F2: &str = "\x1bOQ";
pub const F5: &str = "\x1b[15~";
pub const F6: &str = "\x1b[17~";
pub const F8: &str = "\x1b[19~";
pub const CTRL_C: &str = "\x03";
pub const CTRL_N: &str = "\x0e";
pub const CTRL_D: &str = "\x04";
pub const CTRL_T: &str = "\x14";
pub const CTRL_Z: &str = "\x1a";
pub const FOCUS_LOST: &str = "\x1b[O";
pub const FOCUS_GAINED: &str = "\x1b[I";

/// Alt with a letter.
pub fn alt(letter: char) -> String {
    format!("\x1b{letter}")
}

/// How long anything may take. Much more than it does, because tests share a machine.
const DEADLINE: Duration = Duration::from_secs(10);

/// A question swallows keys until they have rested for half a second.
const GRACE: Duration = Duration::from_millis(700);

struct Terminal {
    parser: vt100::Parser,
    raw: Vec<u8>,
    /// Whether a picture is being drawn: a terminal shows it when it is complete, and so do we.
    is_drawing: bool,
    is_over: bool,
}

impl Terminal {
    /// Takes bytes in, and returns how often it was asked where the cursor is.
    fn process(&mut self, bytes: &[u8]) -> usize {
        // A sequence may come in two parts.
        let from = self.raw.len().saturating_sub(7);
        let old = self.raw.len() - from;
        self.parser.process(bytes);
        self.raw.extend_from_slice(bytes);
        let ends = |sequence: &[u8]| -> Vec<usize> {
            let found = self.raw[from..].windows(sequence.len()).enumerate();
            found.filter(|(_, window)| *window == sequence).map(|(at, _)| at + sequence.len()).collect()
        };
        let (begun, ended) = (ends(b"\x1b[?2026h"), ends(b"\x1b[?2026l"));
        let questions = ends(b"\x1b[6n").into_iter().filter(|end| *end > old).count();
        if begun.last() != ended.last() {
            self.is_drawing = begun.last() > ended.last();
        }
        questions
    }
}

/// A chat on a terminal.
pub struct Chat {
    pub home: Arc<Home>,
    child: Child,
    keyboard: File,
    shared: Arc<(Mutex<Terminal>, Condvar)>,
}

/// How a chat is started.
pub struct Setup {
    pub home: Arc<Home>,
    pub size: (u16, u16),
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
}

impl Setup {
    /// `attache` with these arguments.
    pub fn new(args: &[&str]) -> Self {
        let home = Arc::new(Home::new());
        Setup { home, size: (80, 24), args: args.iter().map(|arg| (*arg).to_owned()).collect(), env: Vec::new() }
    }

    /// A chat with the scripted agent.
    pub fn scripted(args: &[&str], agent: &[&str]) -> Self {
        Setup::new(&[&["chat"], args, &["--", &scripted()], agent].concat())
    }

    pub fn size(mut self, columns: u16, rows: u16) -> Self {
        self.size = (columns, rows);
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    pub fn home(mut self, home: &Arc<Home>) -> Self {
        self.home = home.clone();
        self
    }

    /// Starts it, and returns the other end of its terminal.
    pub fn spawn(&self) -> (Child, File) {
        let (screen, ours) = open_terminal();
        set_size(&ours, self.size);
        let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
        let mut command: Command = self.home.command(&args);
        let theirs = screen.as_raw_fd();
        // SAFETY: both calls may be made between fork and exec, and the descriptor is open until then.
        unsafe {
            command.pre_exec(move || match libc::setsid() >= 0 && libc::ioctl(theirs, libc::TIOCSCTTY, 0) >= 0 {
                true => Ok(()),
                false => Err(std::io::Error::last_os_error()),
            });
        }
        command.env("PATH", "/usr/bin:/bin").env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
        command.envs(self.env.iter().cloned());
        command.stdin(screen.try_clone().unwrap()).stdout(screen.try_clone().unwrap());
        let child = command.stderr(screen.try_clone().unwrap()).spawn().unwrap();
        drop((command, screen));
        (child, File::from(ours))
    }

    pub fn start(self) -> Chat {
        let (child, keyboard) = self.spawn();
        let (columns, rows) = self.size;
        let parser = vt100::Parser::new(size(rows), size(columns), 2000);
        let shared = Arc::new((
            Mutex::new(Terminal { parser, raw: Vec::new(), is_drawing: false, is_over: false }),
            Condvar::new(),
        ));
        let (mut reader, terminal) = (keyboard.try_clone().unwrap(), shared.clone());
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Reading fails when the last process has let go of the terminal.
            while let Ok(length @ 1..) = reader.read(&mut buffer) {
                let Ok(mut state) = terminal.0.lock() else { return };
                for _ in 0..state.process(&buffer[..length]) {
                    let (row, column) = state.parser.screen().cursor_position();
                    reader.write_all(format!("\x1b[{};{}R", row + 1, column + 1).as_bytes()).unwrap();
                }
                drop(state);
                terminal.1.notify_all();
            }
            if let Ok(mut state) = terminal.0.lock() {
                state.is_over = true;
            }
            terminal.1.notify_all();
        });
        Chat { home: self.home, child, keyboard, shared }
    }
}

fn size(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap()
}

fn set_size(terminal: &impl AsRawFd, (columns, rows): (u16, u16)) {
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the descriptor is open, and `size` lives through the call.
    assert_eq!(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, &size) }, 0);
}

impl Chat {
    fn lock(&self) -> MutexGuard<'_, Terminal> {
        self.shared.0.lock().unwrap()
    }

    /// What is on the screen.
    pub fn screen(&self) -> String {
        self.lock().parser.screen().contents()
    }

    /// All that was written to the terminal.
    pub fn raw(&self) -> Vec<u8> {
        self.lock().raw.clone()
    }

    pub fn has_alternate_screen(&self) -> bool {
        self.lock().parser.screen().alternate_screen()
    }

    /// What has been scrolled off the screen, and what is on it.
    pub fn scrollback(&self) -> String {
        let mut state = self.lock();
        let mut text = String::new();
        state.parser.screen_mut().set_scrollback(usize::MAX);
        let most = state.parser.screen().scrollback();
        for back in (0..=most).rev() {
            state.parser.screen_mut().set_scrollback(back);
            let first = state.parser.screen().contents();
            match back {
                0 => text.push_str(&first),
                _ => text.push_str(&format!("{}\n", first.lines().next().unwrap_or_default())),
            }
        }
        text
    }

    /// Waits until the screen is as it should be.
    #[track_caller]
    pub fn until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + DEADLINE;
        let mut state = self.lock();
        loop {
            let screen = state.parser.screen().contents();
            if !state.is_drawing && is_so(&screen) {
                return screen;
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero() && !state.is_over, "{what}, over: {}:\n{screen}", state.is_over);
            state = self.shared.1.wait_timeout(state, left).unwrap().0;
        }
    }

    /// Waits until a text is on the screen.
    #[track_caller]
    pub fn see(&self, text: &str) -> String {
        self.until(&format!("`{text}` does not come"), |screen| screen.contains(text))
    }

    /// Waits until a text is on the screen no more.
    #[track_caller]
    pub fn see_gone(&self, text: &str) -> String {
        self.until(&format!("`{text}` does not go"), |screen| !screen.contains(text))
    }

    /// Waits until the session is open and nothing is under way.
    #[track_caller]
    pub fn see_ready(&self) -> String {
        self.see("enter send")
    }

    /// Waits until something was written to the terminal.
    #[track_caller]
    pub fn see_raw(&self, bytes: &str) {
        let contains = |raw: &[u8]| raw.windows(bytes.len()).any(|window| window == bytes.as_bytes());
        let until = Instant::now() + DEADLINE;
        let mut state = self.lock();
        while !contains(&state.raw) {
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero() && !state.is_over, "{bytes:?} does not come");
            state = self.shared.1.wait_timeout(state, left).unwrap().0;
        }
    }

    /// Types.
    pub fn keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a message, sees it stand there, and sends it.
    #[track_caller]
    pub fn say(&mut self, text: &str) {
        self.keys(text);
        let typed = format!("› {}", text.chars().take(30).collect::<String>());
        self.see(&typed);
        self.keys(ENTER);
        self.see_gone(&typed);
    }

    pub fn paste(&mut self, text: &str) {
        self.keys(&format!("\x1b[200~{text}\x1b[201~"));
    }

    /// Answers a question, when it takes answers.
    #[track_caller]
    pub fn answer(&mut self, question: &str, keys: &str) -> String {
        let screen = self.see(question);
        thread::sleep(GRACE);
        self.keys(keys);
        screen
    }

    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.lock().parser.screen_mut().set_size(size(rows), size(columns));
        set_size(&self.keyboard, (columns, rows));
    }

    pub fn signal(&self, signal: i32) {
        let id = libc::pid_t::try_from(self.child.id()).unwrap();
        // SAFETY: it is our child, and was not waited for.
        assert_eq!(unsafe { libc::kill(id, signal) }, 0);
    }

    /// Waits until it has stopped, as by Ctrl-Z.
    #[track_caller]
    pub fn see_stopped(&self) {
        let id = libc::pid_t::try_from(self.child.id()).unwrap();
        let until = Instant::now() + DEADLINE;
        loop {
            let mut status = 0;
            // SAFETY: it is our child, and `status` lives through the call.
            let waited = unsafe { libc::waitpid(id, &mut status, libc::WUNTRACED | libc::WNOHANG) };
            if waited == id {
                assert!(libc::WIFSTOPPED(status), "it ended");
                return;
            }
            assert!(Instant::now() < until, "it does not stop");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the end; the exit code, or the negative number of a signal.
    #[track_caller]
    pub fn end(&mut self) -> i32 {
        let until = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or_else(|| -status.signal().unwrap());
            }
            assert!(Instant::now() < until, "it does not end:\n{}", self.screen());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Leaves as a person does.
    #[track_caller]
    pub fn quit(&mut self) -> i32 {
        self.keys(CTRL_C);
        self.see("once more leaves");
        self.keys(CTRL_C);
        self.end()
    }
}

impl Drop for Chat {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until something outside of the screen is so.
#[track_caller]
pub fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}
