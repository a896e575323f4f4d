//! Tells a question from a task. A small model changes files when it is asked about them, so for a question it gets no tool
//! that could.

/// How a question begins.
const BEGINNINGS: [&str; 12] =
    ["which", "what", "how", "where", "who", "when", "why", "after how", "in which", "does", "is", "are"];

/// What a task has in it, at the beginning of a sentence.
const TASKS: [&str; 18] = [
    "add",
    "change",
    "correct",
    "create",
    "delete",
    "fix",
    "implement",
    "make",
    "mend",
    "move",
    "please",
    "refactor",
    "remove",
    "rename",
    "replace",
    "set",
    "update",
    "write",
];

/// What says that an answer is wanted.
const ANSWERS: [&str; 4] = ["answer", "describe", "explain", "tell"];

/// How a question begins that may have no question mark.
const PLAIN: [&str; 6] = ["what", "which", "who", "where", "why", "how"];

/// What a task has in it beside the words for what is to be done.
const DEMANDS: [&str; 4] = ["let", "must", "should", "instead"];

/// Whether a prompt asks for nothing but an answer. In doubt it does not.
pub(crate) fn is_question(prompt: &str) -> bool {
    let sentences = sentences(prompt);
    let begins = |sentence: &str, word: &str| {
        sentence.strip_prefix(word).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    };
    let is_one = |sentence: &String| {
        let beginnings = if sentence.ends_with('?') { &BEGINNINGS[..] } else { &PLAIN[..] };
        beginnings.iter().any(|beginning| begins(sentence, beginning))
    };
    let is_demand = |sentence: &String| TASKS.iter().any(|word| begins(sentence, word));
    if sentences.first().is_some_and(is_one) {
        return !sentences.iter().any(is_demand);
    }
    // Something is to be done to know the answer, and nothing of what is to be done is a change.
    words(&sentences).any(|word| ANSWERS.contains(&word)) && !words(&sentences).any(|word| TASKS.contains(&word))
}

/// Whether a prompt wants something to be changed, as far as that can be told.
pub(super) fn is_task(prompt: &str) -> bool {
    let sentences = sentences(prompt);
    words(&sentences).any(|word| TASKS.contains(&word) || DEMANDS.contains(&word)) && !is_question(prompt)
}

fn words(sentences: &[String]) -> impl Iterator<Item = &str> {
    sentences.iter().flat_map(|sentence| sentence.split(|c: char| !c.is_alphanumeric()))
}

/// The sentences of a prompt, in small letters.
fn sentences(prompt: &str) -> Vec<String> {
    // A dot in a name of a file ends no sentence.
    let ends = prompt.match_indices(['.', '?', '!', '\n']).map(|(at, _)| at + 1);
    let ends = ends
        .filter(|at| prompt[*at - 1..].starts_with('\n') || !prompt[*at..].starts_with(|c: char| !c.is_whitespace()));
    let mut sentences: Vec<String> = Vec::new();
    let mut start = 0;
    for end in ends.chain([prompt.len()]) {
        let sentence = prompt[start..end].trim();
        if !sentence.is_empty() {
            sentences.push(sentence.to_lowercase());
        }
        start = end;
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_asks_for_an_answer_and_nothing_else() {
        for (prompt, expected) in [
            ("Which functions call `save`?", true),
            ("How many lines does a.py have? Answer with the number only.", true),
            ("Run `python3 a.py` and answer with what it prints.", true),
            ("Explain what a.py does.", true),
            ("Run the tests, and if they fail, fix a.py and tell me.", false),
            ("Run the tests.", false),
            ("Why does the test fail? Fix it.", false),
            ("Can you mend a.py?", false),
            ("Mend a.py.", false),
            ("Is a.py right?\nPlease change it if not.", false),
            ("Island names are missing?", false),
            ("", false),
            ("What is in a.py", true),
            ("When the list is empty, it crashes.", false),
        ] {
            assert_eq!(is_question(prompt), expected, "{prompt}");
        }
    }

    #[test]
    fn a_task_wants_something_to_be_changed() {
        for (prompt, expected) in [
            ("Fix a.py.", true),
            ("In a.py, change the port.", true),
            ("add() in a.py should return 3.", true),
            ("hi", false),
            ("thanks", false),
            ("list the bugs in a.py", false),
            ("run the tests", false),
            ("what does add do", false),
            ("was macht a.py?", false),
        ] {
            assert_eq!(is_task(prompt), expected, "{prompt}");
        }
    }
}
