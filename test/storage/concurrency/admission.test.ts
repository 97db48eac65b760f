import { AsyncLocalStorage } from 'node:async_hooks';
import { expect } from 'chai';
import { Admission } from '../../../storage/concurrency/admission.ts';

/** An admission with two requests at once, whose clock the test moves. */
function open() {
  let now_ms = 0;
  const limits = {
    at_once_min: 2,
    burst: { expected_max_ms: 5_000, max_ms: 10_000 },
    lasting: { expected_max_ms: 500, max_ms: 2_000 },
  };
  const admission = new Admission(limits, { now: () => now_ms, watchShortage: () => () => true });
  const running: string[] = [];
  const refused: Record<string, number> = {};
  const ends = new Map<string, () => void>();
  const enter = (name: string, { asker = 'acme', onRun }: { asker?: string; onRun?: () => void } = {}) =>
    admission.enter({
      getAsker: () => asker,
      onEnd: (end) => ends.set(name, end),
      run: () => {
        running.push(name);
        onRun?.();
      },
      refuse: ({ retry_after_seconds }) => {
        refused[name] = retry_after_seconds;
      },
    });
  const end = (name: string) => {
    const at = running.indexOf(name);
    if (at >= 0) running.splice(at, 1);
    ends.get(name)!();
  };
  const pass = (ms: number) => {
    now_ms += ms;
  };
  return { admission, enter, end, pass, running, refused };
}

/** Requests of one tenant that fill the process for three seconds, and of which one leaves the queue every 100 ms. */
function flood({ enter, end, pass }: ReturnType<typeof open>): void {
  for (let count = 0; count < 35; count++) enter(`flood ${count}`);
  for (let count = 0; count < 30; count++) {
    pass(100);
    end(`flood ${count}`);
  }
}

describe('admission', () => {
  it('runs some requests at once, and the next when one ends', () => {
    const { enter, end, running, admission } = open();
    for (const name of ['a', 'b', 'c', 'd']) enter(name);
    expect(running).to.deep.equal(['a', 'b']);
    expect(admission.waiting).to.equal(2);
    end('a');
    expect(running).to.deep.equal(['b', 'c']);
  });

  it('runs more at once while the process has capacity left, and fewer when it is short', () => {
    const { enter, end, running, admission } = open();
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) enter(name);
    admission.adapt(false);
    expect(running).to.deep.equal(['a', 'b', 'c', 'd']);
    admission.adapt(true);
    for (const name of ['a', 'b', 'c']) end(name);
    expect(running).to.deep.equal(['d', 'e']);
  });

  it('runs the first request of a tenant at once, and serves its others in turn', () => {
    const { enter, end, running } = open();
    for (const name of ['a', 'b', 'c', 'd', 'e']) enter(name);
    for (const name of ['quiet 1', 'quiet 2']) enter(name, { asker: 'quiet' });
    expect(running).to.deep.equal(['a', 'b', 'quiet 1']);
    for (const name of ['quiet 1', 'a', 'b']) end(name);
    expect(running).to.deep.equal(['c', 'quiet 2']);
  });

  it('has a bounded number of places for first requests', () => {
    const { enter, running, admission } = open();
    for (const asker of ['a', 'b', 'c', 'd', 'e', 'f']) enter(asker, { asker });
    expect(running).to.deep.equal(['a', 'b', 'c', 'd']);
    expect(admission.waiting).to.equal(2);
  });

  it('refuses at once a request with a long expected wait, and none of another tenant', () => {
    const world = open();
    world.enter('other', { asker: 'other' });
    flood(world);
    // One request leaves the queue in 100 ms, and four wait already: half a second for the next one.
    for (let count = 0; count < 30; count++) world.enter(`late ${count}`);
    expect(world.admission.waiting).to.equal(5);
    expect(Object.keys(world.refused)[0]).to.equal('late 1');
    expect(world.refused['late 29']).to.equal(1);
    world.enter('other 2', { asker: 'other' });
    expect(world.refused).not.to.have.property('other 2');
    expect(world.admission.waiting).to.equal(6);
  });

  it('expects the wait of many tenants that wait with one request each', () => {
    const world = open();
    flood(world);
    for (let count = 0; count < 10; count++) for (const first of [1, 2]) world.enter(`${first}`, { asker: `${count}` });
    expect(Object.keys(world.refused)).not.to.deep.equal([]);
    expect(world.admission.waiting).to.be.below(10);
  });

  it('lets a burst wait for ten seconds, and a request of a lasting queue for two', () => {
    const { enter, pass, refused, admission } = open();
    for (const name of ['a', 'b', 'burst']) enter(name);
    pass(1_000);
    enter('lasting');
    pass(1_999);
    admission.adapt(true);
    expect(refused).to.deep.equal({});
    pass(1);
    // Requests that run for five seconds do not count, and this one would run.
    admission.adapt(true);
    expect(refused).to.deep.equal({ lasting: 2 });
  });

  it('a request that runs for five seconds keeps no other from running', () => {
    const { enter, end, pass, running, admission } = open();
    for (const name of ['export', 'hanging', 'next']) enter(name);
    pass(4_999);
    admission.adapt(true);
    expect(running).to.deep.equal(['export', 'hanging']);
    pass(1);
    admission.adapt(true);
    expect(running).to.deep.equal(['export', 'hanging', 'next']);
    // Its end frees nothing a second time.
    end('export');
    for (const name of ['b', 'c']) enter(name);
    expect(running).to.deep.equal(['hanging', 'next', 'b']);
  });

  it('forgets a waiting request whose caller has left', () => {
    const { enter, end, running, admission } = open();
    for (const name of ['a', 'b', 'left', 'c']) enter(name);
    end('left');
    expect(admission.waiting).to.equal(1);
    end('a');
    expect(running).to.deep.equal(['b', 'c']);
  });

  it('runs a waiting request in its own context, not in that of the request that ends', () => {
    const { enter, end } = open();
    const caller = new AsyncLocalStorage<string>();
    let seen: string | undefined;
    enter('a');
    enter('b');
    caller.run('own', () => enter('c', { onRun: () => (seen = caller.getStore()) }));
    caller.run('of a', () => end('a'));
    expect(seen).to.equal('own');
  });
});
