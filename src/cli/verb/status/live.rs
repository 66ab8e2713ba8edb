//! `archivist status --watch`: shows the state again whenever it changes, until Ctrl-C.

use super::{StatusArgs, render};
use crate::client::exit::{Exit, Failure};
use crate::client::server::{Server, decode};
use crate::client::stream::read_lines;
use crate::display::screen::Redraw;
use crate::display::style::{self, Style};
use archivist_config::Scope;
use std::io::IsTerminal;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};
use zbus::proxy::MethodFlags;

/// Interval between two drawings of the same state, because the times in it pass.
const REDRAW: Duration = Duration::from_secs(1);
/// Most streams in a row that end early.
const SHORT: Duration = Duration::from_secs(1);
const SHORT_STREAMS: u32 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// In its place on a terminal.
    Terminal,
    /// A text for each change.
    Text,
    /// A line for each change.
    Json,
}

pub async fn watch(args: &StatusArgs, scope: &Scope) -> Result<Exit, Failure> {
    let mut interrupts = listen(SignalKind::interrupt())?;
    let mut terminations = listen(SignalKind::terminate())?;
    let server = Server::reach(scope).await?;
    let mut view = View::new(args, scope)?;
    let done = tokio::select! {
        done = view.follow(server) => done,
        _ = interrupts.recv() => Ok(()),
        _ = terminations.recv() => Ok(()),
    };
    view.close()?;
    done.map(|()| Exit::Done)
}

fn listen(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(|error| Failure::failed(format!("failed to wait for signals: {error}")))
}

struct View<'a> {
    args: &'a StatusArgs,
    scope: &'a Scope,
    form: Form,
    redraw: Redraw,
    resized: Signal,
    /// The last answer; `None` while the orchestrator does not run.
    answer: Option<String>,
    /// Nothing was shown yet.
    is_first: bool,
}

impl View<'_> {
    fn new<'a>(args: &'a StatusArgs, scope: &'a Scope) -> Result<View<'a>, Failure> {
        Ok(View {
            args,
            scope,
            form: if args.json {
                Form::Json
            } else if std::io::stdout().is_terminal() {
                Form::Terminal
            } else {
                Form::Text
            },
            redraw: Redraw::default(),
            resized: listen(SignalKind::window_change())?,
            answer: None,
            is_first: true,
        })
    }

    /// Shows every change. While the orchestrator does not run, waits until it is started.
    async fn follow(&mut self, mut server: Server) -> Result<(), Failure> {
        let mut short = 0;
        loop {
            let begin = Instant::now();
            match self.one_stream(&server).await {
                Err(failure) if !failure.is_unreachable() => return Err(failure),
                _ => {}
            }
            short = if begin.elapsed() < SHORT { short + 1 } else { 0 };
            if short == SHORT_STREAMS {
                let what = "the orchestrator stopped reporting its state; see: archivist doctor";
                return Err(Failure::failed(what));
            }
            if !server.is_up().await {
                self.show(None)?;
                server.until_up().await?;
            }
            if server.is_cut_off() {
                server = server.reconnected().await?;
            }
        }
    }

    /// Shows the changes that one orchestrator reports.
    async fn one_stream(&mut self, server: &Server) -> Result<(), Failure> {
        let replaced = server.replaced().await?;
        tokio::select! {
            done = self.stream(server) => done,
            // The previous orchestrator may be frozen.
            () = replaced => Ok(()),
        }
    }

    async fn stream(&mut self, server: &Server) -> Result<(), Failure> {
        let proxy = server.proxy().inner();
        let call = proxy.call_with_flags("WatchStatus", MethodFlags::NO_AUTO_START, &());
        let stream: zbus::OwnedFd = server.ask_running(call).await?;
        let mut lines = read_lines(stream.into());
        let mut redraw = tokio::time::interval(REDRAW);
        self.update(server).await?;
        loop {
            tokio::select! {
                line = lines.recv() => match line {
                    Some(_) => self.update(server).await?,
                    None => return Ok(()),
                },
                _ = redraw.tick(), if self.form == Form::Terminal => self.draw()?,
                _ = self.resized.recv(), if self.form == Form::Terminal => {
                    style::print(&self.redraw.start_again())?;
                    self.draw()?;
                }
            }
        }
    }

    async fn update(&mut self, server: &Server) -> Result<(), Failure> {
        let (proxy, flags) = (server.proxy().inner(), MethodFlags::NO_AUTO_START);
        let answer: String = match self.args.id.map(|id| id.to_string()) {
            Some(id) => {
                let call = proxy.call_with_flags("Show", flags, &id);
                server.ask_running(call).await?
            }
            None => {
                let call = proxy.call_with_flags("Status", flags, &());
                server.ask_running(call).await?
            }
        };
        self.show(Some(answer))
    }

    fn show(&mut self, answer: Option<String>) -> Result<(), Failure> {
        if self.answer == answer && !self.is_first {
            return Ok(());
        }
        self.answer = answer;
        match self.form {
            Form::Terminal => self.draw()?,
            Form::Text => {
                let gap = if self.is_first { "" } else { "\n" };
                style::print(&format!("{gap}{}", self.text(&Style::of_stdout())?))?;
            }
            Form::Json => {
                if let Some(answer) = &self.answer {
                    let value: serde_json::Value = decode(answer)?;
                    style::print_document(&format!("{value}\n"))?;
                }
            }
        }
        self.is_first = false;
        Ok(())
    }

    fn draw(&mut self) -> Result<(), Failure> {
        let text = self.text(&Style::of_stdout())?;
        let size = console::Term::stdout().size();
        style::print(&self.redraw.draw(&text, size))
    }

    fn text(&self, style: &Style) -> Result<String, Failure> {
        match &self.answer {
            Some(answer) => render(self.args.id, answer, self.scope, style),
            None => Ok(format!("○ {}\n    Status: not running\n", self.scope.orchestrator_unit())),
        }
    }

    /// Draws the last state over what the terminal shows of Ctrl-C.
    fn close(&mut self) -> Result<(), Failure> {
        match self.form {
            Form::Terminal if !self.is_first => self.draw(),
            _ => Ok(()),
        }
    }
}
