//! The dependency graph: topological order and cycles.

use std::collections::HashMap;

use ostler_model::Dependency;

use super::ServiceError;

/// Services in dependency order: each after its dependencies.
///
/// `needs` returns the dependencies of a service; none for an unknown name.
///
/// # Errors
/// [`ServiceError::Dependency`] for an unknown dependency and for a cycle;
/// [`ServiceError::Unknown`] for an unknown root.
pub(crate) fn topological_order(
    roots: &[String],
    needs: impl Fn(&str) -> Option<Vec<Dependency>>,
    known: &[String],
) -> Result<Vec<String>, ServiceError> {
    let mut sort = TopologicalSort {
        needs,
        visited: HashMap::new(),
        path: Vec::new(),
        order: Vec::new(),
    };
    for root in roots {
        if !sort.visit(root)? {
            return Err(ServiceError::Unknown {
                name: root.clone(),
                known: known.to_vec(),
                elsewhere: Vec::new(),
            });
        }
    }
    Ok(sort.order)
}

struct TopologicalSort<F> {
    needs: F,
    /// Whether everything before it is in order already.
    visited: HashMap<String, bool>,
    path: Vec<String>,
    order: Vec<String>,
}

impl<F: Fn(&str) -> Option<Vec<Dependency>>> TopologicalSort<F> {
    /// False for an unknown name. The recursion is at most as deep as the number of services.
    fn visit(&mut self, name: &str) -> Result<bool, ServiceError> {
        match self.visited.get(name) {
            Some(true) => return Ok(true),
            Some(false) => return Err(self.cycle_error(name)),
            None => {}
        }
        let Some(needs) = (self.needs)(name) else {
            return Ok(false);
        };
        self.visited.insert(name.to_owned(), false);
        self.path.push(name.to_owned());
        for need in needs {
            if !self.visit(&need.name)? {
                return Err(ServiceError::Dependency {
                    on: need.name,
                    problem: "is neither running nor defined".to_owned(),
                });
            }
        }
        self.path.pop();
        self.visited.insert(name.to_owned(), true);
        self.order.push(name.to_owned());
        Ok(true)
    }

    fn cycle_error(&self, back_to: &str) -> ServiceError {
        let from = self.path.iter().position(|it| it == back_to).unwrap_or(0);
        let mut cycle: Vec<&str> = self.path[from..].iter().map(String::as_str).collect();
        cycle.push(back_to);
        ServiceError::Dependency {
            on: back_to.to_owned(),
            problem: format!("depends on it in turn: {}", cycle.join(" -> ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_model::DependencyCondition;
    use proptest::prelude::*;

    fn need(name: &str) -> Dependency {
        Dependency {
            name: name.to_owned(),
            condition: DependencyCondition::Ready,
        }
    }

    fn ordered(edges: &[(&str, &[&str])], roots: &[&str]) -> Result<Vec<String>, String> {
        let needs = |name: &str| {
            let found = edges.iter().find(|(known, _)| *known == name)?;
            Some(found.1.iter().map(|it| need(it)).collect())
        };
        let roots: Vec<String> = roots.iter().map(ToString::to_string).collect();
        topological_order(&roots, needs, &[]).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_needed_comes_first_and_once() {
        let edges: &[(&str, &[&str])] = &[
            ("web", &["api", "db"]),
            ("api", &["db"]),
            ("db", &[]),
            ("docs", &[]),
        ];
        let found = ordered(edges, &["web", "docs", "api"]).expect("no circle");
        assert_eq!(found, ["db", "api", "web", "docs"]);
    }

    #[test]
    fn cycles_and_unknown_names_are_reported() {
        let edges: &[(&str, &[&str])] = &[
            ("a", &["b"]),
            ("b", &["c"]),
            ("c", &["b"]),
            ("d", &["nobody"]),
        ];
        let error = ordered(edges, &["a"]).expect_err("a circle");
        assert_eq!(
            error,
            "it depends on 'b', which depends on it in turn: b -> c -> b"
        );
        let error = ordered(edges, &["d"]).expect_err("nobody");
        assert_eq!(
            error,
            "it depends on 'nobody', which is neither running nor defined"
        );
        let error = ordered(edges, &["e"]).expect_err("nobody");
        assert_eq!(error, "no service 'e'; known: none");
    }

    proptest! {
        #[test]
        fn each_comes_after_what_it_needs(
            edges in prop::collection::vec(prop::collection::vec(0..12_usize, 0..4), 12)
        ) {
            let name = |at: usize| format!("s{at}");
            let needs = |of: &str| {
                let at: usize = of[1..].parse().ok()?;
                Some(edges[at].iter().map(|it| need(&name(*it))).collect())
            };
            let roots: Vec<String> = (0..12).map(name).collect();
            if let Ok(found) = topological_order(&roots, needs, &[]) {
                prop_assert_eq!(found.len(), 12);
                let place = |of: &str| found.iter().position(|it| it == of);
                for (at, needs) in edges.iter().enumerate() {
                    for needed in needs {
                        prop_assert!(place(&name(*needed)) < place(&name(at)));
                    }
                }
            } else {
                let later = |at: usize| edges[at].iter().all(|it| *it < at);
                prop_assert!(!(0..12).all(later), "no circle is possible");
            }
        }
    }
}
