//! Agents and clients made of the values of `conversation`, against each other in every pair of dialects.

use attache_testkit::Dice;

/// Every turn ends once and after its updates, every question is answered once, and nobody is left waiting.
#[test]
fn any_conversation_comes_to_rest() {
    for client in 0..3 {
        for agent in 0..3 {
            for seed in 0..25 {
                let mut dice = Dice::new(seed);
                let mut data = vec![client, agent];
                data.extend((0..100 + dice.below(900)).map(|_| dice.below(256) as u8));
                let played = std::panic::catch_unwind(|| attache_testkit::conversation(&data));
                assert!(played.is_ok(), "client {client}, agent {agent}, seed {seed}");
            }
        }
    }
}
