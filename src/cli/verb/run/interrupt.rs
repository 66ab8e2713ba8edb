//! State machine for Ctrl-C. Pure. The first one interrupts the running hooks and asks what to do,
//! the second one cancels the crawl, the third one leaves without waiting.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// Ctrl-C.
    Signal,
    /// A line from the terminal, without its line feed.
    Line(&'a str),
    NoTerminal,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Interrupt the hooks and ask; [`Input::Line`] answers.
    Interrupt,
    /// Ask again: the answer was invalid.
    AskAgain,
    /// Continue with the next hooks.
    Skip,
    /// Run the interrupted hooks again.
    Retry,
    /// Cancel the crawl and wait until its units have ended.
    Abort,
    /// Leave without waiting.
    Leave,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    #[default]
    Working,
    Asking,
    Aborting,
}

/// See the module's description.
#[derive(Debug)]
pub struct Interrupts {
    state: State,
    /// A terminal can answer questions.
    terminal: bool,
}

impl Interrupts {
    pub fn new(terminal: bool) -> Interrupts {
        let state = State::default();
        Interrupts { state, terminal }
    }

    pub fn state(&self) -> State {
        self.state
    }

    pub fn handle(&mut self, input: Input<'_>) -> Option<Step> {
        use State::*;
        let (state, step) = match (self.state, input) {
            (Working, Input::Signal) if self.terminal => (Asking, Some(Step::Interrupt)),
            (Working | Asking, Input::Signal) => (Aborting, Some(Step::Abort)),
            (Aborting, Input::Signal) => (Aborting, Some(Step::Leave)),
            (Asking, Input::Line(line)) => match line.trim().to_ascii_lowercase().as_str() {
                "" | "s" | "skip" => (Working, Some(Step::Skip)),
                "r" | "retry" => (Working, Some(Step::Retry)),
                "a" | "abort" => (Aborting, Some(Step::Abort)),
                _ => (Asking, Some(Step::AskAgain)),
            },
            (Asking, Input::NoTerminal) => (Aborting, Some(Step::Abort)),
            (Asking, Input::Failed) => (Working, None),
            (state, _) => (state, None),
        };
        self.state = state;
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use State::*;

    /// Every state by every input, with a terminal.
    #[test]
    fn the_whole_table() {
        let inputs = [
            Input::Signal,
            Input::Line(""),
            Input::Line(" R "),
            Input::Line("a"),
            Input::Line("?"),
            Input::NoTerminal,
            Input::Failed,
        ];
        let none = |state| (state, None);
        let (skip, retry) = ((Working, Some(Step::Skip)), (Working, Some(Step::Retry)));
        let abort = (Aborting, Some(Step::Abort));
        let working = none(Working);
        let table = [
            (
                Working,
                [
                    (Asking, Some(Step::Interrupt)),
                    working,
                    working,
                    working,
                    working,
                    working,
                    working,
                ],
            ),
            (Asking, [abort, skip, retry, abort, (Asking, Some(Step::AskAgain)), abort, working]),
            (
                Aborting,
                [
                    (Aborting, Some(Step::Leave)),
                    none(Aborting),
                    none(Aborting),
                    none(Aborting),
                    none(Aborting),
                    none(Aborting),
                    none(Aborting),
                ],
            ),
        ];
        for (state, row) in table {
            for (input, want) in inputs.into_iter().zip(row) {
                let mut interrupts = Interrupts { state, terminal: true };
                let step = interrupts.handle(input);
                assert_eq!((interrupts.state(), step), want, "{state:?} + {input:?}");
            }
        }
    }

    #[test]
    fn without_a_terminal_the_first_interrupt_cancels() {
        let mut interrupts = Interrupts::new(false);
        assert_eq!(interrupts.handle(Input::Signal), Some(Step::Abort));
        assert_eq!(interrupts.handle(Input::Signal), Some(Step::Leave));
    }
}
