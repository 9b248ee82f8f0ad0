//! The command policy as bodies.

use ostler_api::{MatchedRuleBody, PolicyBody, PolicyRuleBody, PolicyVerdictBody};
use ostler_policy::{MatchedRule, PolicyDecision, PolicyVerdict, RuleInfo, RuleSet};

/// The rules of a policy; none is a policy that allows everything.
#[must_use]
pub fn policy_body(policy: Option<&RuleSet>) -> PolicyBody {
    let default = policy.map_or(PolicyDecision::Allow, RuleSet::default_decision);
    let rules = policy.map(RuleSet::rules).unwrap_or_default();
    PolicyBody {
        default: default.to_string(),
        rules: rules.into_iter().map(rule_body).collect(),
    }
}

fn rule_body(rule: RuleInfo) -> PolicyRuleBody {
    PolicyRuleBody {
        id: rule.id,
        decision: rule.decision.to_string(),
        about: rule.about,
        reason: rule.reason,
        tier: rule.tier.as_str().to_owned(),
        file: rule.file,
    }
}

/// The verdict of a policy; none is that of no policy.
#[must_use]
pub fn policy_verdict_body(verdict: Option<PolicyVerdict>) -> PolicyVerdictBody {
    let Some(verdict) = verdict else {
        return PolicyVerdictBody {
            decision: PolicyDecision::Allow.to_string(),
            rule: "none".to_owned(),
            reason: "no policy is set: every command may run".to_owned(),
            fired: Vec::new(),
        };
    };
    PolicyVerdictBody {
        decision: verdict.decision.to_string(),
        rule: verdict.rule,
        reason: verdict.reason,
        fired: verdict.fired.into_iter().map(matched_rule_body).collect(),
    }
}

fn matched_rule_body(matched: MatchedRule) -> MatchedRuleBody {
    MatchedRuleBody {
        rule: matched.rule,
        decision: matched.decision.to_string(),
        reason: matched.reason,
        words: matched.words,
    }
}
