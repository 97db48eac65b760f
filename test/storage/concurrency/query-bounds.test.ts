import { expect } from 'chai';
import { FarthingError } from '../../../core/foundation/error.ts';
import { compileMeter } from '../../../core/metering/compiled-meter.ts';
import {
  QUERY_WORK_MAX,
  QuerySlots,
  readWithin,
  runAsLarge,
  runAsSmall,
} from '../../../storage/concurrency/query-bounds.ts';

const bounds = (asker: string, signal = new AbortController().signal) => ({ asker, signal, spent: { work: 0 } });
/** A question of a tenant, as a request asks it. */
const asking = (tenant_id: string) => ({ tenant_id, bounds: bounds(tenant_id) });

describe('places for questions that read many raw events', () => {
  it('go to one asker after the other, not to who asked most', async () => {
    const places = new QuerySlots({ at_once: 1, waiting_per_asker: 16, waiting: 64 });
    const first = await places.take(bounds('acme'));
    const order: string[] = [];
    const ask = async (asker: string) => {
      const leave = await places.take(bounds(asker));
      order.push(asker);
      leave();
    };
    const all = ['acme', 'acme', 'acme', 'other', 'third'].map(ask);
    first();
    await Promise.all(all);
    expect(order).to.deep.equal(['acme', 'other', 'third', 'acme', 'acme']);
  });

  it('no asker may have many questions wait: 429', async () => {
    const places = new QuerySlots({ at_once: 1, waiting_per_asker: 16, waiting: 64 });
    const leave = await places.take(bounds('acme'));
    const waiting = Array.from({ length: 16 }, () => places.take(bounds('acme')));
    expect(await codeOf(places.take(bounds('acme')))).to.equal('too_many_requests');
    const other = places.take(bounds('other'));
    leave();
    for (const place of waiting.slice(0, 1)) (await place)();
    (await other)();
    for (const place of waiting.slice(1)) (await place)();
  });

  it('nor may all askers together: 503', async () => {
    const places = new QuerySlots({ at_once: 1, waiting_per_asker: 16, waiting: 64 });
    const leave = await places.take(bounds('acme'));
    const waiting = Array.from({ length: 64 }, (_, index) => places.take(bounds(`tenant ${index}`)));
    expect(await codeOf(places.take(bounds('another')))).to.equal('service_unavailable');
    leave();
    for (const place of waiting) (await place)();
  });

  it('one request may have many: they are one asker’s, one after the other, and none is refused', async () => {
    const own = asking('acme');
    let [at_once, most] = [0, 0];
    const work = async () => {
      most = Math.max(most, ++at_once);
      await new Promise((resolve) => setImmediate(resolve));
      at_once--;
    };
    const broken = runAsLarge(own, () => Promise.reject(new Error('broken')));
    await Promise.all(Array.from({ length: 40 }, () => runAsLarge(own, work)));
    expect(most).to.equal(1);
    expect(await broken.catch((error) => error.message)).to.equal('broken');
  });

  it('billing asks for itself: a few at once, none is refused, and tenants take turns', async () => {
    const order: string[] = [];
    let [at_once, most] = [0, 0];
    const ask = (tenant_id: string, count: number) =>
      Array.from({ length: count }, () =>
        runAsSmall({ tenant_id }, async () => {
          order.push(tenant_id);
          most = Math.max(most, ++at_once);
          await new Promise((resolve) => setImmediate(resolve));
          at_once--;
        }),
      );
    await Promise.all([...ask('acme', 300), ...ask('globex', 2)]);
    expect(most).to.equal(4);
    expect(order).to.have.length(302);
    expect(order.lastIndexOf('globex')).to.be.lessThan(12);
  });

  it('who goes away while waiting takes no place', async () => {
    const places = new QuerySlots({ at_once: 1, waiting_per_asker: 16, waiting: 64 });
    const leave = await places.take(bounds('acme'));
    const caller = new AbortController();
    const waiting = places.take(bounds('acme', caller.signal));
    caller.abort(new FarthingError('invalid_operation', 'the caller has gone'));
    expect(await codeOf(waiting)).to.equal('invalid_operation');
    leave();
    (await places.take(bounds('acme')))();
  });
});

describe('the work of a question', () => {
  const meter = (expression: string) =>
    compileMeter({
      id: 'm',
      event_name: 'call',
      filters: [],
      aggregation: { type: 'SUM', expression },
      reset_usage: 'BILLING_PERIOD',
    });

  /** How many events of so many characters are read at most, in which tries. */
  const eventsRead = async (expression: string, characters: number): Promise<number[]> => {
    const tries: number[] = [];
    const refusal = await readWithin(asking('acme'), meter(expression), async (work) => {
      let events = 0;
      while (work.maySpend(characters)) events++;
      tries.push(events);
      return undefined;
    }).catch((error: Error) => error);
    expect(refusal).to.be.instanceOf(FarthingError);
    expect((refusal as Error).message).to.match(/^start_time: .*shorter range/);
    return tries;
  };

  it('is the events times what the meter makes of each, and their length; a small try goes before', async () => {
    const [small, plain] = (await eventsRead('a * 2', 100)) as [number, number];
    expect(small).to.be.within(5_000, 15_000);
    expect(plain).to.be.within(2_000_000, 10_000_000);
    expect((await eventsRead('pow(a, b)', 100))[1]).to.be.lessThan(plain / 3);
    expect((await eventsRead('a * 2', 1_000_000))[1]).to.be.lessThan(QUERY_WORK_MAX / 40_000);
  });

  it('the questions of one request have a bound together, and those of the next begin anew', async () => {
    const request = asking('acme');
    const ask = () =>
      readWithin(request, meter('a * 2'), async (work) => {
        let events = 0;
        while (events < 100_000) {
          if (!work.maySpend(100)) return undefined;
          events++;
        }
        return events;
      });
    let answered = 0;
    const refusal = await (async () => {
      for (; answered < 1_000; answered++) await ask();
    })().catch((error: Error) => error);
    expect((refusal as Error).message).to.match(/^start_time: .*fewer meters/);
    expect(answered).to.be.within(10, 200);
    expect(request.bounds.spent.work).to.be.within(QUERY_WORK_MAX, 2.1 * QUERY_WORK_MAX);
    request.bounds.spent.work = 0;
    expect(await ask()).to.equal(100_000);
  });

  it('has no bounds where billing asks', async () => {
    const read = await readWithin({ tenant_id: 'acme' }, meter('pow(a, b)'), async (work) => {
      let events = 0;
      while (events < 1_000 && work.maySpend(1e9)) events++;
      return events;
    });
    expect(read).to.equal(1_000);
  });

  it('what is small is read once', async () => {
    let tries = 0;
    const read = async () => ++tries;
    expect(await readWithin(asking('acme'), meter('a * 2'), read)).to.equal(1);
  });

  it('a small question about loaded events waits for no statement', async () => {
    let end: (() => void) | undefined;
    const isEnding = new Promise<void>((resolve) => (end = resolve));
    const statements = [1, 2].map(() => runAsSmall(asking('acme'), () => isEnding));
    const order: string[] = [];
    const read = async (name: string, is_loaded: boolean) => {
      await readWithin({ ...asking('acme'), is_loaded }, meter('a * 2'), async () => 1);
      order.push(name);
    };
    const fromStore = read('from the store', false);
    await read('loaded', true);
    end!();
    await Promise.all([...statements, fromStore]);
    expect(order).to.deep.equal(['loaded', 'from the store']);
  });

  it('a large question about loaded events waits for a place as any other', async () => {
    const tries: number[] = [];
    const answer = await readWithin({ ...asking('acme'), is_loaded: true }, meter('a * 2'), async (work) => {
      let events = 0;
      while (events < 100_000 && work.maySpend(100)) events++;
      tries.push(events);
      return events < 100_000 ? undefined : events;
    });
    expect(answer).to.equal(100_000);
    expect(tries[0]).to.be.within(5_000, 15_000);
    expect(tries).to.have.length(2);
  });

  it('a small question does not wait for large ones', async () => {
    let end: (() => void) | undefined;
    const isEnding = new Promise<void>((resolve) => (end = resolve));
    const large = [1, 2, 3].map(() => runAsLarge(asking('acme'), () => isEnding));
    expect(await runAsSmall(asking('other'), async () => 'answered')).to.equal('answered');
    end!();
    await Promise.all(large);
  });
});

function codeOf(place: Promise<unknown>): Promise<string> {
  return place.then(
    () => 'a place',
    (error: FarthingError) => error.code,
  );
}
