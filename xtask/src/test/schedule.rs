//! Which steps begin next. Pure: the runner starts them and reports their ends.

use super::plan::{Lane, TestStep};

/// The steps of one run: waiting, running or ended.
#[derive(Debug)]
pub(super) struct Schedule<'a> {
    waiting: Vec<&'a TestStep>,
    running: Vec<&'a TestStep>,
}

impl<'a> Schedule<'a> {
    pub(super) const fn new(steps: Vec<&'a TestStep>) -> Self {
        Self {
            waiting: steps,
            running: Vec::new(),
        }
    }

    /// Takes the steps that can begin now. Steps of one lane begin in the order of the list.
    pub(super) fn begin_ready(&mut self) -> Vec<&'a TestStep> {
        let mut started = Vec::new();
        while let Some(index) = self.first_ready() {
            let step = self.waiting.remove(index);
            self.running.push(step);
            started.push(step);
        }
        started
    }

    /// Records that a step ended.
    pub(super) fn end(&mut self, name: &str) {
        self.running.retain(|step| step.name != name);
    }

    /// Whether nothing waits and nothing runs.
    pub(super) const fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty()
    }

    fn first_ready(&self) -> Option<usize> {
        (0..self.waiting.len()).find(|index| self.is_ready(*index))
    }

    fn is_ready(&self, index: usize) -> bool {
        let step = self.waiting[index];
        let earlier = &self.waiting[..index];
        let mut pending = self.waiting.iter().chain(&self.running);
        !pending.any(|other| step.after.contains(&other.name))
            && earlier.iter().all(|other| !conflicts(step, other))
            && self.running.iter().all(|other| !conflicts(step, other))
    }
}

/// Whether two steps may not run beside each other.
fn conflicts(one: &TestStep, other: &TestStep) -> bool {
    one.lane == other.lane || one.lane == Lane::Machine || other.lane == Lane::Machine
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::plan::STEPS;

    fn names(steps: &[&TestStep]) -> Vec<&'static str> {
        steps.iter().map(|step| step.name).collect()
    }

    #[test]
    fn programs_are_installed_while_cargo_checks() {
        let mut schedule = Schedule::new(STEPS.iter().collect());
        assert_eq!(names(&schedule.begin_ready()), ["setup", "fmt"]);
        schedule.end("fmt");
        assert_eq!(names(&schedule.begin_ready()), ["tidy"]);
    }

    #[test]
    fn a_step_chosen_alone_needs_no_other() {
        let python = STEPS.iter().filter(|step| step.name == "python");
        let mut schedule = Schedule::new(python.collect());
        assert_eq!(names(&schedule.begin_ready()), ["python"]);
        schedule.end("python");
        assert!(schedule.is_done());
    }

    /// Ends running steps in every order that the seeds give.
    #[test]
    fn every_step_runs_once_after_what_it_needs_and_beside_no_conflict() {
        for seed in 0..200_u64 {
            let mut schedule = Schedule::new(STEPS.iter().collect());
            let mut running: Vec<&TestStep> = Vec::new();
            let mut ended: Vec<&str> = Vec::new();
            let mut rng = fastrand::Rng::with_seed(seed);
            while !schedule.is_done() {
                for step in schedule.begin_ready() {
                    assert!(running.iter().all(|other| !conflicts(step, other)));
                    assert!(step.after.iter().all(|name| ended.contains(name)));
                    running.push(step);
                }
                assert!(!running.is_empty(), "nothing can begin after {ended:?}");
                let index = rng.usize(..running.len());
                let step = running.remove(index);
                schedule.end(step.name);
                ended.push(step.name);
            }
            assert_eq!(ended.len(), STEPS.len());
        }
    }
}
