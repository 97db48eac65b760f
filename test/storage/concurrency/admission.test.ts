import { AsyncLocalStorage } from 'node:async_hooks';
import { expect } from 'chai';
import { Admission } from '../../../storage/concurrency/admission.ts';

/** An admission with two requests at once, whose clock the test moves. */
function open() {
  let now_ms = 0;
  const limits = { at_once_min: 2, burst_ms: 5_000, lasting_ms: 500 };
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

/** Requests of one tenant that leave `waiting` in the queue after three seconds, in which one leaves it every 10 ms. */
function flood({ enter, end, pass }: ReturnType<typeof open>, waiting: number): void {
  for (let count = 0; count < 302 + waiting; count++) enter(`flood ${count}`);
  for (let count = 0; count < 300; count++) {
    pass(10);
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

  it('always runs one request of a tenant, and serves its others in turn', () => {
    const { enter, end, running } = open();
    for (const name of ['a', 'b', 'c', 'd', 'e']) enter(name);
    for (const name of ['quiet 1', 'quiet 2', 'quiet 3']) enter(name, { asker: 'quiet' });
    expect(running).to.deep.equal(['a', 'b', 'quiet 1']);
    end('quiet 1');
    expect(running).to.deep.equal(['a', 'b', 'quiet 2']);
    for (const name of ['a', 'b']) end(name);
    expect(running).to.deep.equal(['quiet 2', 'c', 'quiet 3']);
  });

  it('has a bounded number of places for first requests', () => {
    const { enter, running, admission } = open();
    for (const asker of ['a', 'b', 'c', 'd', 'e', 'f']) enter(asker, { asker });
    expect(running).to.deep.equal(['a', 'b', 'c', 'd']);
    expect(admission.waiting).to.equal(2);
  });

  it('refuses at once a request with a long expected wait, and none of another tenant', () => {
    const world = open();
    flood(world, 120);
    for (let count = 0; count < 30; count++) world.enter(`late ${count}`);
    // A hundred and twenty-eight may always wait, here for 1.3 seconds.
    expect(world.admission.waiting).to.equal(128);
    expect(Object.keys(world.refused)[0]).to.equal('late 8');
    expect(world.refused['late 29']).to.equal(2);
    for (const name of ['first', 'second']) world.enter(name, { asker: 'other' });
    expect(world.running).to.include('first');
    expect(world.refused).not.to.have.property('second');
    expect(world.admission.waiting).to.equal(129);
  });

  it('at three times the capacity completes as much as it can, refuses the others, and delays no quiet tenant', () => {
    const { enter, end, pass, running, refused, admission } = open();
    const steps = 1_000;
    for (let step = 0; step < steps; step++) {
      for (const name of ['a', 'b', 'c']) enter(`${step} ${name}`, { asker: 'flood' });
      if (step % 25 === 0) {
        enter('quiet', { asker: 'quiet' });
        expect(running).to.include('quiet');
        end('quiet');
      }
      pass(10);
      end(running[0]!);
    }
    expect(running).to.have.length(2);
    expect(admission.waiting).to.equal(127);
    expect(Object.keys(refused)).to.have.length(3 * steps - steps - 2 - 127);
  });

  it('expects the wait of many tenants that wait with one request each', () => {
    const world = open();
    flood(world, 100);
    for (let count = 0; count < 100; count++) world.enter(`${count}`, { asker: `tenant ${count}` });
    // Two tenants run at once, and fifty tenants wait for half a second.
    expect(Object.keys(world.refused)[0]).to.equal('51');
  });

  it('refuses a request that expects more than five seconds, however few wait', () => {
    const { enter, end, pass, refused, running } = open();
    for (let count = 0; count < 20; count++) enter(`${count}`);
    for (let count = 0; count < 4; count++) {
      pass(500);
      end(`${count}`);
    }
    expect(running).to.deep.equal(['4', '5']);
    enter('late');
    expect(refused).to.deep.equal({ late: 8 });
  });

  it('lets a burst expect five seconds, and refuses what has waited for ten', () => {
    const { enter, end, pass, refused, admission } = open();
    for (let count = 0; count < 502; count++) enter(`burst ${count}`);
    for (let count = 0; count < 10; count++) {
      pass(10);
      end(`burst ${count}`);
    }
    for (let count = 502; count < 600; count++) enter(`burst ${count}`);
    expect(Object.keys(refused)[0]).to.equal('burst 512');
    expect(admission.waiting).to.equal(500);
    pass(9_890);
    admission.adapt(true);
    // Two have replaced those that run for more than five seconds.
    expect(admission.waiting).to.equal(498);
    pass(10);
    admission.adapt(true);
    expect(admission.waiting).to.equal(10);
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

  it('gives the place of a first request to a tenant that waits before one that arrives', () => {
    const { enter, end, running, admission } = open();
    for (const asker of ['a', 'b', 'c', 'd', 'e', 'f']) enter(asker, { asker });
    enter('a 2', { asker: 'a' });
    end('c');
    expect(running).to.deep.equal(['a', 'b', 'd', 'e']);
    enter('late', { asker: 'late' });
    expect(running).to.deep.equal(['a', 'b', 'd', 'e']);
    // The request of a tenant that has one running takes no such place.
    for (const name of ['d', 'e']) end(name);
    expect(running).to.deep.equal(['a', 'b', 'f', 'late']);
    end('f');
    expect(running).to.deep.equal(['a', 'b', 'late']);
    expect(admission.waiting).to.equal(1);
  });

  it('gives the places of others to no first request of a tenant', () => {
    const { enter, end, running } = open();
    for (const name of ['a', 'b', 'waiting 1', 'waiting 2']) enter(name);
    for (const asker of ['c', 'd']) enter(asker, { asker });
    for (const name of ['a', 'b']) end(name);
    expect(running).to.have.members(['c', 'd', 'waiting 1', 'waiting 2']);
  });

  it('expects no longer wait than that of all requests', () => {
    const world = open();
    flood(world, 30);
    for (let count = 0; count < 22; count++) world.enter(`${count}`, { asker: `tenant ${count}` });
    world.enter('next');
    expect(world.refused).to.deep.equal({});
  });
});
