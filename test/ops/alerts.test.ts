/** Every rule of ops/prometheus-alerts.yml is silent on a service that is well, and speaks when its fault is there. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { routes } from '../../api/resources.ts';
import { evaluate, metricsIn, type Scrape } from '../support/promql.ts';
import { until } from '../support/until.ts';
import { type Operated, startOperated } from './operated.ts';
import { RULES, ruleNamed } from './rules.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');

type Fault = {
  readonly alerts: readonly string[];
  readonly what: string;
  begin(operated: Operated): Promise<unknown>;
  /** Before each further scrape. */
  again?(operated: Operated): Promise<unknown>;
  end?(operated: Operated): Promise<unknown>;
};

/** In this order: some go on where the one before has stopped. */
const FAULTS: readonly Fault[] = [
  {
    alerts: ['FarthingStoreAway'],
    what: 'ClickHouse is cut off',
    begin: ({ clickhouseWay }) => clickhouseWay.cut(),
    end: ({ clickhouseWay }) => clickhouseWay.restore(),
  },
  {
    alerts: ['FarthingStoreAway'],
    what: 'Postgres takes connections and answers nothing',
    begin: async ({ postgresWay }) => postgresWay.hang(),
    end: async ({ postgresWay }) => postgresWay.goOn(),
  },
  {
    alerts: ['FarthingLogAway'],
    what: 'Postgres, which has the log, is cut off',
    begin: ({ postgresWay }) => postgresWay.cut(),
    end: ({ postgresWay }) => postgresWay.restore(),
  },
  {
    alerts: ['FarthingClockSkewed'],
    what: 'the clock of the process is 30 s ahead',
    begin: async ({ passTime }) => passTime(30),
    end: async ({ passTime }) => passTime(-30),
  },
  {
    alerts: ['FarthingPipelineBehind'],
    what: 'ClickHouse was away for ten minutes while events came',
    begin: async ({ clickhouseWay, ingest, passTime }) => {
      await clickhouseWay.cut();
      await ingest();
      passTime(600);
    },
    end: ({ clickhouseWay }) => clickhouseWay.restore(),
  },
  {
    alerts: ['FarthingSlicesRetried'],
    what: 'ClickHouse is away, and a slice waits for it',
    begin: async ({ clickhouseWay, ingest, settled }) => {
      await settled();
      await clickhouseWay.cut();
      await ingest();
    },
    end: ({ clickhouseWay }) => clickhouseWay.restore(),
  },
  {
    alerts: ['FarthingServerErrors'],
    what: 'questions about usage find no ClickHouse',
    begin: ({ clickhouseWay }) => clickhouseWay.cut(),
    again: async ({ request }) => expect((await request('POST', '/events/query', {})).status).to.equal(503),
    end: ({ clickhouseWay }) => clickhouseWay.restore(),
  },
  {
    alerts: ['FarthingAcceptSlow'],
    what: 'the table of the log is locked for more than a second',
    begin: async ({ database, ingest }) => {
      let waiting: Promise<unknown> | undefined;
      await database.postgres.transaction(async (transaction) => {
        await transaction.raw('lock table log_records in access exclusive mode');
        waiting = ingest();
        await transaction.raw('select pg_sleep(1.5)');
      });
      await waiting;
    },
  },
  {
    alerts: ['FarthingPoolExhausted'],
    what: 'every connection is held by a transaction',
    begin: (operated) => operated.holdConnections(),
    end: (operated) => operated.letConnectionsGo(),
  },
  {
    alerts: ['FarthingRequestsRefused'],
    what: 'more requests wait for a connection than may, and the others have waited for ten seconds',
    begin: async (operated) => {
      await operated.holdConnections();
      for (let count = 0; count < 60; count++) void operated.request('GET', '/plans').catch(() => undefined);
    },
    end: (operated) => operated.letConnectionsGo(),
  },
  {
    alerts: ['FarthingTicksFailing'],
    what: 'the table of the ticks is away',
    begin: ({ sql }) => sql('alter table job_ticks rename to job_ticks_away'),
    end: ({ sql }) => sql('alter table job_ticks_away rename to job_ticks'),
  },
  {
    alerts: ['FarthingJobsFailing'],
    what: 'the table of the subscriptions is away',
    begin: ({ sql }) => sql('alter table subscriptions rename to subscriptions_away'),
    end: ({ sql }) => sql('alter table subscriptions_away rename to subscriptions'),
  },
  {
    alerts: ['FarthingJobsWaiting'],
    what: 'no job can be taken, and twenty minutes pass',
    begin: async ({ sql }) => {
      await sql(
        `create function not_taken() returns trigger language plpgsql as $$ begin raise exception 'not taken'; end $$`,
      );
      await sql(`create trigger not_taken before update of locked_at on graphile_worker._private_jobs for each row
                   when (new.locked_at is not null) execute function not_taken()`);
    },
    again: ({ sql }) =>
      sql(`update graphile_worker._private_jobs set run_at = run_at - interval '20 minutes', created_at = created_at - interval '20 minutes'
            where locked_at is null and run_at <= now()`),
    end: ({ sql }) => sql('drop function not_taken cascade'),
  },
  {
    alerts: ['FarthingPushesWaiting', 'FarthingPushesRefused', 'FarthingConnectionsStopped'],
    what: 'a record has waited for seven hours, one is refused, and a connection has wrong credentials',
    begin: async ({ sql }) => {
      await sql(`insert into connections (id, tenant_id, environment_id, name, provider_type, has_account, connection_state)
                 values ('con_away', 't', 'e', 'Away', 'stripe', true, 'active'), ('con_wrong', 't', 'e2', 'Wrong', 'stripe', true, 'needs_attention')`);
      await sql(`insert into integration_mappings (id, tenant_id, environment_id, connection_id, provider_type, entity_type, entity_id, mapping_state, pending_since, push_error)
                 values ('map_1', 't', 'e', 'con_away', 'stripe', 'invoice', 'inv_1', 'intended', now() - interval '7 hours', null),
                        ('map_2', 't', 'e', 'con_away', 'stripe', 'invoice', 'inv_2', 'intended', null, 'refused')`);
    },
    end: async ({ sql }) => {
      await sql(`delete from integration_mappings where connection_id = 'con_away'`);
      await sql(`delete from connections where id in ('con_away', 'con_wrong')`);
    },
  },
  {
    alerts: ['FarthingProviderEventsWaiting'],
    what: 'an event of a provider has waited for seven hours; one whose connection needs a person is not counted',
    begin: async ({ sql }) => {
      await sql(`insert into connections (id, tenant_id, environment_id, name, provider_type, has_account, connection_state)
                 values ('con_away', 't', 'e', 'Away', 'stripe', true, 'active'), ('con_wrong', 't', 'e2', 'Wrong', 'stripe', true, 'needs_attention')`);
      const insert = (connection_id: string, hours: number) =>
        sql(`insert into provider_events (id, tenant_id, environment_id, connection_id, provider_type, provider_event_id, event_type, subjects, event_state, next_attempt_at, created_at)
             select 'event_of_' || id, tenant_id, environment_id, id, provider_type, '1', 'invoice.paid', '[]', 'received', now(), now() - interval '${hours} hours'
               from connections where id = '${connection_id}'`);
      await insert('con_wrong', 100);
      await insert('con_away', 7);
    },
    end: async ({ sql }) => {
      await sql(`delete from provider_events where connection_id in ('con_away', 'con_wrong')`);
      await sql(`delete from connections where id in ('con_away', 'con_wrong')`);
    },
  },
  {
    alerts: ['FarthingOutboxRefused'],
    what: 'the log has refused an entry of the event outbox',
    begin: ({ sql }) =>
      sql(`insert into event_outbox (tenant_id, environment_id, received_at, event_ids, events, failed_at)
           values ('t', 'e', now(), '{1}', array['{}'], now())`),
    end: ({ sql }) => sql('delete from event_outbox where failed_at is not null'),
  },
  {
    alerts: ['FarthingEventsUnaccounted', 'FarthingPartitionStopped'],
    what: 'a record that was accepted is not in the log',
    begin: async ({ settled, sql }) => {
      await settled();
      await sql('create table lost as select next_offset as "offset" from log_partitions');
      await sql('update log_partitions set next_offset = next_offset + 1, accepted_events = accepted_events + 1');
    },
  },
  {
    alerts: ['FarthingDeadLetters'],
    what: 'what stands in its place cannot be read',
    begin: ({ sql }) =>
      sql(`insert into log_records (partition, "offset", kind, tenant_id, environment_id, received_at_us, event_count, body)
           select 0, "offset", 'events', '', '', extract(epoch from now()) * 1000000, 1, 'lost' from lost`),
    end: ({ settled }) => settled(),
  },
  {
    alerts: ['FarthingLedgerUnsettled'],
    what: 'a record of the ledger is taken out of its last range',
    begin: ({ sql }) => sql('update slice_ledger set to_offset = to_offset - 1, records = records - 1'),
  },
  {
    alerts: ['FarthingAuditDifference'],
    what: 'the audit comes to it',
    begin: async () => {},
    again: ({ tick }) => tick('audit-sample'),
  },
  {
    alerts: ['FarthingRecordsFailing'],
    what: 'the audit tells of what it found',
    begin: async () => {},
    // Of two ticks of one second the second is none.
    again: ({ tick }) => tick('audit-sample'),
    end: ({ sql }) => sql('update slice_ledger set to_offset = to_offset + 1, records = records + 1'),
  },
  {
    alerts: ['FarthingAuditSilent'],
    what: 'two hours have passed since the last sample',
    begin: async (operated) => operated.passTimeOfPrometheus(7_200),
  },
  {
    alerts: ['FarthingEventLoopBusy'],
    what: 'the process computes for long at a stretch',
    begin: async () => {},
    again: async ({ compute }) => compute(),
  },
  {
    alerts: ['FarthingDown', 'FarthingApiMissing', 'FarthingRoleMissing'],
    what: 'the process has ended',
    begin: ({ stopService }) => stopService(),
  },
];

/** Without it, the scrapes would take all of the CPU for as long as a fault takes to show. */
const SCRAPE_PAUSE_MS = 150;

/** Its fault needs a disk of its own. */
const SHOWN_ELSEWHERE: Record<string, string> = { FarthingDiskNearlyFull: 'test/faults/disk.test.ts' };

describe('the alerts', function () {
  this.timeout(90_000);
  let operated: Operated;
  before(async () => {
    operated = await startOperated();
  });
  after(() => operated.stop());

  const isFiring = (alert: string, scrapes: readonly Scrape[]) => evaluate(ruleNamed(alert), scrapes).length > 0;

  it('are all silent while nothing is wrong', async () => {
    await operated.ingest();
    await operated.tickUntilAudited();
    await operated.settled();
    const scrapes = [await operated.scrape(), await operated.scrape()];
    expect(RULES.map(({ alert }) => alert).filter((alert) => isFiring(alert, scrapes))).to.deep.equal([]);
  });

  it('ask for numbers that /metrics tells', async () => {
    const told = new Set((await operated.scrape()).samples.map(({ name }) => name));
    for (const { alert, expr } of RULES)
      expect(
        metricsIn(expr).filter((name) => !told.has(name)),
        alert,
      ).to.deep.equal([]);
  });

  for (const { alerts, what, begin, again, end } of FAULTS) {
    it(`${alerts.join(', ')}: ${what}`, async () => {
      const scrapes = [await operated.scrape()];
      const firing = () => alerts.filter((alert) => isFiring(alert, scrapes));
      expect(firing(), 'before').to.deep.equal([]);
      try {
        await begin(operated);
        const deadline = performance.now() + 45_000;
        const scrapeOnce = async () => {
          await again?.(operated);
          const began = performance.now();
          scrapes.push(await operated.scrape());
          expect(performance.now() - began, 'a scrape does not wait for what hangs').to.be.below(5_000);
          return firing().length === alerts.length || performance.now() > deadline;
        };
        await until('the alerts fire', scrapeOnce, 60_000, SCRAPE_PAUSE_MS);
        expect(firing(), 'while the fault is there').to.deep.equal(alerts);
      } finally {
        await end?.(operated);
      }
    });
  }

  it('FarthingAcceptSlow, and what the dashboard shows beside it, is about every route that events come in by', () => {
    const taking = routes
      .filter(({ access, raw_body }) => access === 'event:write' && raw_body)
      .map(({ path }) => path);
    expect(taking).to.include.members(['/events', '/otlp/v1/metrics']);
    const inWords = (text: string) =>
      [...text.matchAll(/method=\\?"POST\\?",route=~\\?"([^"\\]*)/g)].map(([, all]) => all!.split('|'));
    const watched = [...inWords(ruleNamed('FarthingAcceptSlow')), ...inWords(read('ops/grafana-dashboard.json'))];
    expect(watched.length).to.equal(3);
    for (const each of watched) expect(each).to.have.members(taking);
  });

  it('are shown by a fault each, here or where it says', () => {
    for (const [alert, file] of Object.entries(SHOWN_ELSEWHERE)) expect(read(file)).to.include(`'${alert}'`);
    const shown = new Set([...FAULTS.flatMap(({ alerts }) => alerts), ...Object.keys(SHOWN_ELSEWHERE)]);
    expect([...shown]).to.have.members(RULES.map(({ alert }) => alert));
  });

  it('say why they are there, whom they wake, and have a place in docs/production.md', () => {
    const page = read('docs/production.md');
    for (const { alert, labels, annotations } of RULES) {
      expect(labels.severity, alert).to.be.oneOf(['page', 'ticket']);
      expect(annotations.summary.length, alert).to.be.greaterThan(10);
      expect(annotations.description.length, alert).to.be.greaterThan(30);
      expect(page, 'what to do').to.include(`| \`${alert}\` |`);
    }
  });
});
