use std::{sync::Arc, time::Duration};

use super::{
    dice::Dice,
    node::{LEASE, Node},
    plan::Trouble,
    world::World,
};

/// Does harm until the time is up. What it has begun may go on after that; [`World::heal`] ends it.
pub async fn run(world: Arc<World>) {
    let plan = world.outside.plan.clone();
    let mut dice = Dice::new(plan.seed, 2);
    let until = tokio::time::Instant::now() + plan.length;
    if plan.troubles.is_empty() {
        return;
    }
    loop {
        let pause = dice.millis(200, plan.pause_millis_max);
        if tokio::time::Instant::now() + pause >= until {
            return;
        }
        tokio::time::sleep(pause).await;
        let slot = dice.below(World::NODES as u64) as usize;
        if let Some(trouble) = dice.pick(&plan.troubles).copied() {
            let own = Dice::new(plan.seed, dice.roll());
            tokio::spawn(strike(Arc::clone(&world), trouble, slot, own));
        }
    }
}

async fn strike(world: Arc<World>, trouble: Trouble, slot: usize, mut dice: Dice) {
    let ledger = Arc::clone(&world.outside.ledger);
    let Some(node) = world.node(slot).filter(|node| node.is_serving() && !world.is_healed()) else { return };
    match trouble {
        Trouble::Crash => {
            ledger.troubles(node.id, format_args!("crashes"));
            node.gate.crash();
            tokio::time::sleep(dice.millis(0, 15_000)).await;
            world.restart(slot, &mut dice);
        }
        Trouble::Leave => {
            ledger.note(format_args!("{} is asked to stop", super::ledger::short(node.id)));
            node.stop.cancel();
            while node.exists() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            tokio::time::sleep(dice.millis(0, 5_000)).await;
            world.restart(slot, &mut dice);
        }
        Trouble::Pause if node.gate.is_open() => {
            let length = dice.millis(350, (LEASE.as_micros() / 1_000).unsigned_abs() + 5_000);
            ledger.troubles(node.id, format_args!("stands still for {length:?}"));
            node.gate.pause(length).await;
            ledger.note(format_args!("{} goes on", super::ledger::short(node.id)));
        }
        Trouble::Suspend if node.gate.is_open() => {
            let length = dice.millis(2_000, 12_000);
            ledger.troubles(node.id, format_args!("is suspended for {length:?}"));
            let before = node.clock.ahead_micros();
            let behind = i64::try_from(length.as_micros()).unwrap_or(i64::MAX);
            world.set_clock(&node, before - behind);
            node.gate.pause(length).await;
            ledger.note(format_args!("{} goes on", super::ledger::short(node.id)));
            tokio::time::sleep(dice.millis(200, 5_000)).await;
            world.set_clock(&node, before);
        }
        Trouble::Pause | Trouble::Suspend => {}
        Trouble::Cut => {
            let length = dice.millis(500, 10_000);
            ledger.troubles(node.id, format_args!("is cut off from the database for {length:?}"));
            cut_off(&world, &node, length, dice.percent(50)).await;
        }
        Trouble::Step => {
            let ahead = world.skew(&mut dice);
            ledger.troubles(node.id, format_args!("has its clock set to {ahead} us ahead"));
            world.set_clock(&node, ahead);
            if dice.percent(70) {
                tokio::time::sleep(dice.millis(500, 20_000)).await;
                world.set_clock(&node, dice.around_zero(100_000));
            }
        }
        Trouble::Outage => {
            let length = dice.millis(200, 8_000);
            ledger.note(format_args!("the database is away for {length:?}"));
            world.set_down(true);
            tokio::time::sleep(length).await;
            world.set_down(false);
        }
    }
}

/// Every call of the node fails, or none has an answer.
async fn cut_off(world: &World, node: &Node, length: Duration, has_answers: bool) {
    if !has_answers {
        node.line.pause(length).await;
        return;
    }
    node.faults.set_down(true);
    tokio::time::sleep(length).await;
    node.faults.set_down(world.is_down());
}
