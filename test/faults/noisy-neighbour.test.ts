/**
 * Nobody's work may stop another's: one tenant does its worst in many ways, on the real service, and another's accepts and
 * questions go on. The bounds are those of a machine that many share; `npm run bench -- neighbour` tells the ratios.
 */
import { join } from 'node:path';
import { expect } from 'chai';
import { CORRECTIONS, Disturber, type Felt, makeTenant, Neighbour, WAYS } from '../support/neighbours.ts';
import { type ServiceProcess, startServiceProcess, temporaryDirectory } from '../support/service.ts';

const FOR_MS = 3_000;
/** Where even a quiet service is slow, because the machine is busy with something else. */
const TIMES_QUIET = 20;
const ACCEPT_MS = 2_000;
const FRESH_MS = 5_000;

describe('a noisy neighbour', function () {
  this.timeout(240_000);
  const directory = temporaryDirectory();
  let service: ServiceProcess;
  let disturber: Disturber;
  let neighbour: Neighbour;
  let quiet: Felt;

  before(async () => {
    const dir = join(directory.path, 'data');
    service = await startServiceProcess({ DATA_DIR: dir, LOG_LEVEL: 'error' });
    disturber = new Disturber({ url: service.url, api_key: service.api_key });
    neighbour = new Neighbour(await makeTenant(dir, service.url));
    await neighbour.begin();
    quiet = await neighbour.feel(FOR_MS);
  });
  afterEach(function () {
    if (this.currentTest?.state === 'failed') console.log(service.stdout().slice(-2_000));
  });
  after(async () => {
    disturber.stop();
    await service.stop();
    directory.remove();
  });

  for (const way of [...WAYS, CORRECTIONS]) {
    it(way.name, async () => {
      const { answer: felt, statuses } = await disturber.during(way, () => neighbour.feel(FOR_MS));
      console.log(`      ${told(felt)}; ${JSON.stringify(statuses)}`);
      await neighbour.recover(2 * slowest(quiet.freshness_ms));
      expect(slowest(felt.accepts_ms)).to.be.lessThan(Math.max(ACCEPT_MS, TIMES_QUIET * slowest(quiet.accepts_ms)));
      expect(slowest(felt.freshness_ms)).to.be.lessThan(Math.max(FRESH_MS, TIMES_QUIET * slowest(quiet.freshness_ms)));
      // The worst was really done, or refused: nothing has failed.
      const refused = ['200', '202', '400', '429', '503', 'none'];
      expect(refused).to.include.members(Object.keys(statuses));
    });
  }

  it('is not felt any more when it is over', async () => {
    const felt = await neighbour.feel(FOR_MS);
    console.log(`      quiet before: ${told(quiet)}; and behind: ${told(felt)}`);
    expect(slowest(felt.freshness_ms)).to.be.lessThan(Math.max(FRESH_MS, TIMES_QUIET * slowest(quiet.freshness_ms)));
  });
});

function slowest(all: readonly number[]): number {
  return Math.max(...all);
}

function told({ accepts_ms, freshness_ms }: Felt): string {
  const of = (all: readonly number[]) => `${Math.round(slowest(all))} ms`;
  return `${accepts_ms.length} events, slowest accept ${of(accepts_ms)}, slowest freshness ${of(freshness_ms)}`;
}
