/** The permission of every route. test/golden/permissions.json lists the permission of each operation, docs/permissions.md the roles. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { listReceivedProviders } from '../../actions/delivery/inbound/receive-webhook.ts';
import { type Route, route } from '../../api/http/route.ts';
import { routes } from '../../api/resources.ts';
import { canDo, ENTITIES, ROLES } from '../../core/foundation/access/role.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { expectGolden } from '../support/golden.ts';
import { some } from '../support/samples.ts';

const INGESTION = ['ingestEvent', 'ingestEventsBulk', 'ingestRawEventsBulk', 'ingestOtlpMetrics'];
const EVENT_READING = [
  'listEvents',
  'listRawEvents',
  'getEvent',
  'lookupEvent',
  'getEventThread',
  'streamEvents',
  'listEventCorrections',
  'listCorrections',
  'listLateEvents',
  'listDeadLetters',
  'listUncountedEvents',
  'getEventsMonitoring',
  'listEventNames',
  'listEventProperties',
  'getAttention',
  'search',
  'getUsageStatistics',
  'getUsageByMeter',
  'getUsageAnalytics',
  'exportUsage',
  'queryMeterUsage',
  'getMeterUsageAnalytics',
  'getMeterUsageDetailedAnalytics',
];
const RESERVING = [
  'checkEntitlement',
  'listReservations',
  'queryReservation',
  'getReservation',
  'commitReservation',
  'releaseReservation',
];
const PROFILE = ['getUserInfo', 'updateUser', 'getCurrentSession', 'endCurrentSession', 'listSessions', 'endSession'];
/** What nobody can have a key for yet, or needs one for, and what comes with a signature. */
const PUBLIC = [
  ...['signUp', 'login', 'createSession', 'getSignInOptions', 'getDocument', 'receiveSandboxWebhook', 'getExportFile'],
  ...listReceivedProviders().map(nameHandler),
];

/** Roles that are asked at every route: one that may do everything, and one that is refused at about half of them. */
const ASKED_EVERYWHERE = ['all_writer', 'all_reader'];

/** Searches and questions, which come with POST and change nothing. */
const asks = ({ method, path }: Route) =>
  method === 'get' ||
  /\/(search|query|preview|preview\/pdf|cost|usage|usage\/meter|summaries|analytics|analytics-v2|detailed-analytics|revenue-dashboard|revenues)$/.test(
    path,
  );

const all = routes.map((one) => one.operation_id);
/** A preview of a correction needs the permission of the correction. */
const reads = routes.filter((one) => asks(one) && one.access !== 'event:correct').map((one) => one.operation_id);

describe('permissions', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi();
  });
  after(() => api.stop());

  /** The operations that are let through to their own checks: no body is sent and no id exists, so nothing is done. */
  async function allowedTo(key: string, asked: readonly Route[]): Promise<string[]> {
    const allowed: string[] = [];
    for (const { method, path, operation_id } of asked) {
      const { status, body } = await api.request(method.toUpperCase(), path.replace(/:\w+/g, 'none_such'), { key });
      const isRefused = status === 403 && /^this needs the permission /.test(body.message!);
      if (!isRefused) allowed.push(operation_id);
    }
    return allowed;
  }

  const machine = { user_type: 'service_account' } as const;
  const rows: [string, string[], Parameters<TestApi['keyWithRoles']>[1], readonly string[]][] = [
    ['super_admin, everything', ['super_admin'], {}, all],
    ['super_admin of a service account, everything', ['super_admin'], machine, all],
    ['all_writer, everything', ['all_writer'], {}, all],
    ['all_reader, every question, and its own profile', ['all_reader'], {}, [...reads, ...PROFILE]],
    ['event_ingestor, sending events and nothing else', ['event_ingestor'], machine, INGESTION],
    ['event_reader, reading events and nothing else', ['event_reader'], machine, EVENT_READING],
    ['reserver, reservations and nothing else', ['reserver'], machine, RESERVING],
    ['a user without any role, its own profile and nothing else', [], {}, PROFILE],
    ['a service account without any role, nothing', [], machine, []],
    [
      'a publishable key of a super_admin, sending events and nothing else',
      ['super_admin'],
      { key_type: 'publishable_key' },
      INGESTION,
    ],
    ['a publishable key of an all_reader, nothing', ['all_reader'], { key_type: 'publishable_key' }, []],
  ];
  for (const [who, roles, kind, expected] of rows) {
    it(`of ${who}`, async () => {
      const rights = { roles, user_type: 'user', key_type: 'private_key', ...kind } as const;
      const allowed = routes.filter(({ access }) => access === 'public' || canDo(rights, access));
      expect(allowed.map(({ operation_id }) => operation_id)).to.have.members([...new Set([...expected, ...PUBLIC])]);
      // Each route refuses by its declared permission alone, which the roles of ASKED_EVERYWHERE show at all of them.
      const isNarrow = (operation_id: string) => expected.length < 30 && expected.includes(operation_id);
      const asked = some(routes).filter(
        ({ operation_id }, index) => ASKED_EVERYWHERE.includes(roles[0]!) || isNarrow(operation_id) || index % 20 === 0,
      );
      const passed = await allowedTo(await api.keyWithRoles(roles, kind), asked);
      expect(passed).to.have.members(asked.filter((one) => allowed.includes(one)).map((one) => one.operation_id));
    });
  }

  it('are stated by every route, which the type checker asks for', () => {
    const probe = { method: 'get', path: '/p', operation_id: 'p', summary: 'p', tag: 'p', success: 200 } as const;
    const handle = async () => null;
    // @ts-expect-error: a route without a permission is none
    route({ ...probe, handle });
    // @ts-expect-error: nor is one whose permission no role could hold
    route({ ...probe, handle, access: 'custmer:read' });
    // @ts-expect-error: nor one that any key would do for
    route({ ...probe, handle, access: 'read' });
    expect(routes.filter((one) => one.access === 'public').map((one) => one.operation_id)).to.have.members(PUBLIC);
  });

  it('of each operation are those of the golden file', () => {
    const declared = [...routes]
      .sort((a, b) => a.path.localeCompare(b.path) || a.method.localeCompare(b.method))
      .map(({ method, path, access }) => [`${method.toUpperCase()} ${path}`, access]);
    expectGolden('permissions.json', Object.fromEntries(declared));
  });

  describe('docs/permissions.md', () => {
    const text = readFileSync(join(import.meta.dirname, '../../docs/permissions.md'), 'utf8');
    const rowsOf = (title: string) => {
      const section = text.split(/^## /m).find((part) => part.startsWith(title)) ?? '';
      return section.split('\n').filter((line) => line.startsWith('| `'));
    };

    it('says what each role allows', () => {
      const declared = ROLES.map(({ id, permissions, user_types }) => {
        const holders = user_types.map((type) => type.replace('_', ' ')).join(', ');
        return `| \`${id}\` | ${holders} | ${allowedBy(permissions)} |`;
      });
      expect(rowsOf('Roles')).to.deep.equal(declared);
    });
  });
});

/** Most roles say the same of every entity. */
function allowedBy(permissions: Readonly<Record<string, readonly string[]>>): string {
  const ofAll = ['read', 'write'].filter((action) => ENTITIES.every((one) => permissions[one]?.includes(action)));
  const rest = Object.entries(permissions).flatMap(([entity, actions]) =>
    actions.filter((action) => !ofAll.includes(action)).map((action) => `\`${entity}:${action}\``),
  );
  return [...ofAll.map((action) => `\`${action}\` of everything`), ...rest].join(', ');
}

/** Operation id of the webhook of a provider. */
function nameHandler(provider_type: string): string {
  return `handle${provider_type.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase())}Webhook`;
}
