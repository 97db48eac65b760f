/** Leases of the embedded log when the thread that renews them dies. A file of its own, because it waits for a long lease. */
import { expect } from 'chai';
import { entry } from '../contract.ts';
import { LeaseStage } from './lease-stage.ts';

/** A third of the lease is what a new thread and its connection have: several seconds on a busy machine. */
const LEASE_MS = 10_000;

describe('leases of the embedded log whose thread dies', () => {
  let stage: LeaseStage;
  afterEach(() => stage.stop());

  it('are kept by all consumers of a process when the thread of them dies: there is another soon', async () => {
    stage = await LeaseStage.start({ alive_ms: 60_000, consumers: 2, lease_ms: LEASE_MS });
    const { log, rival, said } = stage;
    const before = await stage.listLeases();
    said.length = 0;
    await log.append([entry(0, 'end')]);
    await stage.hears('thread');
    await stage.waitForRenewal([0, 1]);
    expect([rival.assignments(0), rival.assignments(1)], 'the new thread was in time').to.deep.equal([0, 0]);
    // Both consumers share the main loop: while one blocks it, the leases of both depend on the new thread.
    await log.append([entry(0, `block ${1.2 * LEASE_MS}`), entry(1, 'block 1')]);
    await stage.hears('ours', 2);
    expect([rival.assignments(0), rival.assignments(1)]).to.deep.equal([0, 0]);
    expect(await stage.listLeases()).to.deep.equal(before);
    expect([stage.heard('revoked'), stage.heard('lost'), stage.heard('thread')]).to.deep.equal([0, 0, 1]);
  });
});
