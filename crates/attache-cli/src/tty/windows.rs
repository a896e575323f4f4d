//! The terminal as Windows has it: the console, whatever stdin and stdout are.
//!
//! Waiting for a line blocks a thread and cannot be given up. So there is one thread that reads, and it reads a line when
//! somebody waits for one; a line that is typed for a question that was withdrawn is nobody's.

use std::fs::File;
use std::io;
use std::os::windows::io::AsRawHandle;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;
use windows_sys::Win32::System::Console::{
    CONSOLE_MODE, CONSOLE_SCREEN_BUFFER_INFO, ENABLE_ECHO_INPUT, ENABLE_LINE_INPUT, ENABLE_PROCESSED_INPUT,
    ENABLE_VIRTUAL_TERMINAL_PROCESSING, FlushConsoleInputBuffer, GetConsoleMode, GetConsoleScreenBufferInfo,
    ReadConsoleW, SetConsoleMode, WriteConsoleW,
};

use super::LONGEST_LINE;

/// The console, opened for reading and for writing, for a program that has it for a while.
pub(crate) fn open_ends() -> io::Result<(File, File)> {
    // Both rights are needed for either: the modes of the console are read and written by its handles.
    let open = |name| File::options().read(true).write(true).open(name);
    Ok((open("CONIN$")?, open("CONOUT$")?))
}

pub(super) struct Terminal {
    input: Arc<File>,
    output: File,
    lines: Mutex<Lines>,
}

/// The lines of the thread that reads.
struct Lines {
    wanted: std::sync::mpsc::Sender<()>,
    typed: Option<mpsc::UnboundedReceiver<io::Result<Option<String>>>>,
    /// How many lines were wanted and did not come yet.
    waiting: usize,
}

impl Terminal {
    pub(super) fn open() -> io::Result<Self> {
        let (input, output) = open_ends()?;
        let mode = mode(&output)?;
        // What we show has colours in it.
        set_mode(&output, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING)?;
        let input = Arc::new(input);
        let (wanted, wishes) = std::sync::mpsc::channel();
        let (sender, typed) = mpsc::unbounded_channel();
        let reader = input.clone();
        // It ends with the process, or with the next line after nobody wants any.
        std::thread::Builder::new()
            .name("console".into())
            .spawn(move || while wishes.recv().is_ok() && sender.send(read_line(&reader)).is_ok() {})?;
        Ok(Terminal { input, output, lines: Mutex::new(Lines { wanted, typed: Some(typed), waiting: 0 }) })
    }

    /// Columns and rows.
    pub(super) fn size(&self) -> Option<(u16, u16)> {
        let mut info = CONSOLE_SCREEN_BUFFER_INFO::default();
        // SAFETY: the handle is open as long as `self`; `info` lives through the call.
        let asked = unsafe { GetConsoleScreenBufferInfo(self.output.as_raw_handle(), &mut info) };
        let window = info.srWindow;
        let length = |first: i16, last: i16| u16::try_from(i32::from(last) - i32::from(first) + 1).ok();
        let size = (length(window.Left, window.Right)?, length(window.Top, window.Bottom)?);
        (asked != 0 && size.0 > 0 && size.1 > 0).then_some(size)
    }

    pub(super) fn forget_input(&self) {
        // SAFETY: the handle is open as long as `self`.
        unsafe { FlushConsoleInputBuffer(self.input.as_raw_handle()) };
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = &mut *lines;
        while lines.typed.as_mut().is_some_and(|typed| typed.try_recv().is_ok()) {
            lines.waiting = lines.waiting.saturating_sub(1);
        }
    }

    /// Waits for a line. `None` at the end of input.
    pub(super) async fn line(&self) -> io::Result<Option<String>> {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        let lent = {
            let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            // A question that was withdrawn has left the thread waiting: the next line is for whoever asks now.
            if lines.waiting == 0 {
                lines.wanted.send(()).map_err(|_| gone())?;
                lines.waiting = 1;
            }
            lines.typed.take()
        };
        // Given back also if the question is withdrawn.
        let mut lent = Lent { lines: &self.lines, typed: lent };
        let typed = lent.typed.as_mut().ok_or_else(gone)?;
        let line = typed.recv().await.ok_or_else(gone)?;
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).waiting = 0;
        line
    }

    pub(super) async fn write(&self, text: &str) -> io::Result<()> {
        let text: Vec<u16> = text.encode_utf16().collect();
        let mut rest = text.as_slice();
        while !rest.is_empty() {
            let mut written = 0;
            let length = rest.len().min(8192) as u32;
            // SAFETY: as many characters are there as are said to be; `written` lives through the call.
            let done = unsafe {
                WriteConsoleW(self.output.as_raw_handle(), rest.as_ptr(), length, &mut written, std::ptr::null())
            };
            if done == 0 || written == 0 {
                return Err(io::Error::last_os_error());
            }
            rest = &rest[(written as usize).min(rest.len())..];
        }
        Ok(())
    }

    pub(super) fn hide(&self) -> io::Result<Hidden> {
        let before = mode(&self.input)?;
        let typed = (before | ENABLE_LINE_INPUT | ENABLE_PROCESSED_INPUT) & !ENABLE_ECHO_INPUT;
        set_mode(&self.input, typed)?;
        Ok(Hidden { input: self.input.clone(), before })
    }
}

/// The receiver of lines while somebody waits for one.
struct Lent<'a> {
    lines: &'a Mutex<Lines>,
    typed: Option<mpsc::UnboundedReceiver<io::Result<Option<String>>>>,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if let Some(typed) = self.typed.take() {
            self.lines.lock().unwrap_or_else(PoisonError::into_inner).typed = Some(typed);
        }
    }
}

/// A console that does not show what is typed, until this is dropped.
pub(super) struct Hidden {
    input: Arc<File>,
    before: CONSOLE_MODE,
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // A console that is gone has nothing to show.
        let _ = set_mode(&self.input, self.before);
    }
}

fn mode(console: &File) -> io::Result<CONSOLE_MODE> {
    let mut mode = 0;
    // SAFETY: the handle is open; `mode` lives through the call.
    match unsafe { GetConsoleMode(console.as_raw_handle(), &mut mode) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(mode),
    }
}

fn set_mode(console: &File, mode: CONSOLE_MODE) -> io::Result<()> {
    // SAFETY: the handle is open.
    match unsafe { SetConsoleMode(console.as_raw_handle(), mode) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Reads a line as it was typed. Ctrl-Z at its beginning is the end of input.
fn read_line(input: &File) -> io::Result<Option<String>> {
    let mut line: Vec<u16> = Vec::new();
    loop {
        let mut buffer = [0_u16; 512];
        let mut length = 0;
        // SAFETY: there is as much room as is said; what is pointed to lives through the call.
        let read = unsafe {
            ReadConsoleW(
                input.as_raw_handle(),
                buffer.as_mut_ptr().cast(),
                buffer.len() as u32,
                &mut length,
                std::ptr::null(),
            )
        };
        if read == 0 {
            return Err(io::Error::last_os_error());
        }
        let typed = &buffer[..(length as usize).min(buffer.len())];
        if typed.is_empty() || (line.is_empty() && typed[0] == 0x1a) {
            return Ok(None);
        }
        line.extend_from_slice(typed);
        if typed.ends_with(&[u16::from(b'\n')]) {
            return Ok(Some(String::from_utf16_lossy(&line).trim().to_owned()));
        }
        line.truncate(LONGEST_LINE);
    }
}
