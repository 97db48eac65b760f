import { expect } from 'chai';
import { PromptSlots } from '../../../storage/concurrency/prompt-slots.ts';

describe('slots for work that may hang', () => {
  const take = (slots: PromptSlots, names: readonly string[], can_hang = true) => {
    for (const name of names) slots.take(name, { can_hang });
  };

  it('are limited, and free when work ends', () => {
    const slots = new PromptSlots({ at_once: 2, with_slow: 4, slow_after_ms: 3_600_000 });
    take(slots, ['a', 'b']);
    expect(slots.hasFree).to.equal(false);
    expect(slots.computeWait()).to.be.within(1, 3_600_000);
    slots.free('a');
    expect([slots.hasFree, slots.computeWait()]).to.deep.equal([true, 0]);
  });

  it('are free when work is slow, up to a total', () => {
    const slots = new PromptSlots({ at_once: 2, with_slow: 4, slow_after_ms: 0 });
    take(slots, ['a', 'b', 'c']);
    expect([slots.hasFree, slots.computeWait()]).to.deep.equal([true, 0]);
    take(slots, ['d']);
    expect([slots.hasFree, slots.computeWait()]).to.deep.equal([false, null]);
    slots.free('b');
    expect(slots.hasFree).to.equal(true);
  });

  it('are retained by work that waits for no other service', () => {
    const slots = new PromptSlots({ at_once: 2, with_slow: 4, slow_after_ms: 0 });
    take(slots, ['a', 'b'], false);
    expect([slots.hasFree, slots.computeWait()]).to.deep.equal([false, null]);
  });
});
