//! A script as a list of simple commands, which is all that many scripts are.

use crate::word::CommandWord;

/// A script without compound commands, functions and here-documents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandList {
    /// Its commands and what separates them, in order.
    pub steps: Vec<ListStep>,
    /// Whether a comment ends it: text appended to the script would be part of the comment.
    pub ends_in_comment: bool,
}

/// A command, or what stands between commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListStep {
    /// A simple command.
    Command(ListedCommand),
    /// An operator.
    Operator(ListOperator),
    /// `(`
    SubshellStart,
    /// `)`
    SubshellEnd,
    /// `}`
    GroupEnd,
}

/// What separates two commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListOperator {
    /// `&&`
    And,
    /// `||`
    Or,
    /// `;` or the end of a line.
    Next,
    /// `&`
    Background,
    /// `|` or `|&`
    Pipe,
}

/// A simple command, without its redirections.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListedCommand {
    /// The variables set before its words.
    pub assignments: Vec<Assignment>,
    /// Program and arguments.
    pub words: Vec<CommandWord>,
}

/// `NAME=value`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The variable's name.
    pub name: String,
    /// Its value.
    pub value: CommandWord,
}

/// Collects a [`CommandList`] during a visit.
#[derive(Debug, Default)]
pub(super) struct ListBuilder {
    list: CommandList,
    is_more: bool,
    /// How many values surround the node that is visited: what runs in one is no part of the list.
    values: usize,
}

impl ListBuilder {
    /// Ends the visit; none where the script is more than a list.
    pub(super) fn finish(self) -> Option<CommandList> {
        (!self.is_more).then_some(self.list)
    }

    pub(super) fn enter_value(&mut self) {
        self.values += 1;
    }

    pub(super) fn leave_value(&mut self) {
        self.values -= 1;
    }

    /// The script is more than a list.
    pub(super) fn reject(&mut self) {
        self.is_more |= self.values == 0;
    }

    pub(super) fn add_token(&mut self, token: &str) {
        let step = match token {
            ";" | "\n" => ListStep::Operator(ListOperator::Next),
            "&" => ListStep::Operator(ListOperator::Background),
            "&&" => ListStep::Operator(ListOperator::And),
            "||" => ListStep::Operator(ListOperator::Or),
            "|" | "|&" => ListStep::Operator(ListOperator::Pipe),
            "(" => ListStep::SubshellStart,
            ")" => ListStep::SubshellEnd,
            "}" => ListStep::GroupEnd,
            ";;" => return self.reject(),
            _ => return,
        };
        self.add(step);
    }

    pub(super) fn add_comment(&mut self) {
        self.list.ends_in_comment |= self.values == 0;
    }

    pub(super) fn add_command(&mut self, command: ListedCommand) {
        self.add(ListStep::Command(command));
    }

    /// Adds an assignment that is a statement, or part of one.
    pub(super) fn add_assignment(&mut self, assignment: Assignment, begins_statement: bool) {
        match self.list.steps.last_mut() {
            Some(ListStep::Command(last)) if self.values == 0 && !begins_statement => {
                last.assignments.push(assignment);
            }
            Some(_) | None => self.add_command(ListedCommand {
                assignments: vec![assignment],
                words: Vec::new(),
            }),
        }
    }

    /// Adds words that stand after a redirection to the command it belongs to.
    pub(super) fn add_words(&mut self, words: Vec<CommandWord>, begins_command: bool) {
        match self.list.steps.last_mut() {
            _ if self.values > 0 => {}
            _ if begins_command => self.add(ListStep::Command(ListedCommand {
                assignments: Vec::new(),
                words,
            })),
            Some(ListStep::Command(last)) => last.words.extend(words),
            Some(_) | None => self.reject(),
        }
    }

    fn add(&mut self, step: ListStep) {
        if self.values > 0 {
            return;
        }
        let begins = matches!(step, ListStep::Command(_) | ListStep::SubshellStart);
        let last = self.list.steps.last();
        let is_next_to = last.is_some_and(|last| {
            matches!(
                last,
                ListStep::Command(_) | ListStep::SubshellEnd | ListStep::GroupEnd
            )
        });
        if begins && is_next_to {
            // The grammar skips the end of a line.
            let end_of_line = ListStep::Operator(ListOperator::Next);
            self.list.steps.push(end_of_line);
        }
        self.list.ends_in_comment = false;
        self.list.steps.push(step);
    }
}
