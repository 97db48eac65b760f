/** Browser sessions: sign-in by a cookie that scripts cannot read (http/session-cookie.ts). */
import {
  type OpenedSession,
  openSession,
  openSessionByLink,
  openSessionByPassword,
} from '../../../actions/operations/access/open-session.ts';
import { signUp } from '../../../actions/operations/access/sign-up.ts';
import { canRead, listPermissions } from '../../../core/foundation/access/role.ts';
import { deriveSessionEnd } from '../../../core/foundation/access/session.ts';
import { FarthingError, notFound } from '../../../core/foundation/error.ts';
import { runInEnvironment } from '../../../storage/foundation/request-context.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { EnvironmentModel } from '../../../storage/models/foundation/environment.ts';
import { TenantModel } from '../../../storage/models/foundation/tenant.ts';
import { UserModel } from '../../../storage/models/foundation/user.ts';
import {
  deleteSession,
  findSession,
  listSessions,
  type SessionRow,
} from '../../../storage/models/operations/session.ts';
import { loadClock } from '../../../storage/models/schedule/environment-clock.ts';
import { forgetKeys, getRateLimits } from '../../http/auth.ts';
import { clientAddress } from '../../http/rate-limit.ts';
import { type Context, idParams, type Route, route } from '../../http/route.ts';
import {
  checkConsoleRequest,
  clearSessionCookie,
  readSessionToken,
  setSessionCookie,
} from '../../http/session-cookie.ts';
import { limitAttempts } from './attempts.ts';
import { CreateSession, SessionAnswer, SessionListAnswer, SignInOptions } from './session-schema.ts';

const tag = 'Signing in';

export const sessionRoutes: Route[] = [
  route({
    method: 'post',
    path: '/auth/session',
    operation_id: 'createSession',
    summary: 'Sign in a browser',
    description:
      'Signs in with email and password, signs up (`sign_up`), or uses the one-time link of `npm start` (`link_token`), and sets the cookie of a new session; an earlier session of the browser ends. For pages of this service alone: the request needs the header `X-Farthing-Console: 1`, and `Sec-Fetch-Site: same-origin` or the Origin of this service. Refused like `POST /auth/login` and `POST /auth/signup`; a program uses those, or an API key.',
    tag,
    access: 'public',
    body: CreateSession,
    success: 201,
    answer: SessionAnswer,
    handle: async ({ body }, context) => {
      const { request, response, services } = context;
      checkConsoleRequest(request, services.config);
      getRateLimits(services).countSigning(request);
      const opened = await open(body, context);
      setSessionCookie(response, opened.token, services.config);
      if (opened.ended_tenant_id !== undefined) forgetKeys(services, opened.ended_tenant_id);
      return showSession(opened, context);
    },
  }),
  route({
    method: 'get',
    path: '/auth/session',
    operation_id: 'getCurrentSession',
    summary: 'Get the current session',
    description:
      'Returns the session, its user and tenant, the environments and the permissions. Works with an API key or token, too; session is then null.',
    tag,
    access: 'self:read',
    success: 200,
    answer: SessionAnswer,
    handle: async (_input, context) => {
      const { principal, services } = context;
      const { tenant_id, user_id, session_id: id } = principal;
      const session = id === null ? null : await findSession(services.postgres, { tenant_id, user_id, id });
      return showSession({ tenant_id, user_id, session: session ?? null }, context);
    },
  }),
  route({
    method: 'delete',
    path: '/auth/session',
    operation_id: 'endCurrentSession',
    summary: 'Sign out',
    description: 'Ends the session of the request and deletes its cookie. 404 for an API key or token.',
    tag,
    // Users of a suspended tenant can sign out, too.
    access: 'self:read',
    success: 204,
    handle: async (_input, context) => {
      const { principal, response, services } = context;
      if (principal.session_id === null) throw new FarthingError('not_found', 'this request belongs to no session');
      await end(principal.session_id, context);
      clearSessionCookie(response, services.config);
    },
  }),
  route({
    method: 'get',
    path: '/auth/sessions',
    operation_id: 'listSessions',
    summary: 'List your sessions',
    description: 'Returns the sessions of the caller that have not ended, the last used one first.',
    tag,
    access: 'self:read',
    success: 200,
    answer: SessionListAnswer,
    handle: async (_input, { principal, services, now }) => {
      const sessions = await listSessions(services.postgres, principal, now);
      return {
        items: sessions.map((session) => ({
          ...showTimes(session),
          last_used_at: session.last_used_at,
          user_agent: session.user_agent,
          is_current: session.id === principal.session_id,
        })),
      };
    },
  }),
  route({
    method: 'delete',
    path: '/auth/sessions/:id',
    operation_id: 'endSession',
    summary: 'End one of your sessions',
    description:
      'Ends a session of the caller: later requests with its cookie are refused. A session of another user is not found.',
    tag,
    // Users of a suspended tenant can end a stolen session, too.
    access: 'self:read',
    has_no_tag: true,
    params: idParams,
    success: 204,
    handle: ({ params }, context) => end(params.id, context),
  }),
  route({
    method: 'get',
    path: '/auth/options',
    operation_id: 'getSignInOptions',
    summary: 'Get how people sign in',
    description: 'Returns whether sign-up is open.',
    tag,
    access: 'public',
    success: 200,
    answer: SignInOptions,
    handle: async (_input, { services }) => ({ sign_up_open: services.config.SIGN_UP === 'open' }),
  }),
];

/** Refuses a sign-up if the operator has closed it. */
export function refuseClosedSignUp({ config }: Context['services']): void {
  if (config.SIGN_UP === 'closed')
    throw new FarthingError('permission_denied', 'nobody can sign up here: ask the operator for a tenant');
}

async function open(body: CreateSession, { request, services, now }: Context): Promise<OpenedSession> {
  const browser = {
    user_agent: request.get('user-agent'),
    previous_token: readSessionToken(request, services.config),
    now,
  };
  if (body.link_token !== undefined) return openSessionByLink(services, body.link_token, browser);
  const { email, password, tenant_name } = body;
  if (body.sign_up) {
    refuseClosedSignUp(services);
    const { user } = await signUp(services, { wanted: { email, password, tenant_name }, now });
    return openSession(services.postgres, { tenant_id: user.tenant_id, user_id: user.id }, browser);
  }
  const whom = [clientAddress(request), email.toLowerCase()];
  return limitAttempts(whom, () => openSessionByPassword(services, { email, password }, browser));
}

async function end(id: string, { principal, services }: Context): Promise<void> {
  const { tenant_id, user_id } = principal;
  if (!(await deleteSession(services.postgres, { tenant_id, user_id, id }))) throw notFound('session', id);
  forgetKeys(services, tenant_id);
}

type SessionOfUser = { readonly tenant_id: string; readonly user_id: string; readonly session: SessionRow | null };

async function showSession({ tenant_id, user_id, session }: SessionOfUser, { services, received_at }: Context) {
  const database = services.postgres;
  const user = await UserModel.fetch(tenant_id, user_id, { database });
  const tenant = await TenantModel.fetch(tenant_id, tenant_id, { database });
  const environments = canRead(user, 'environment') ? await listEnvironments(tenant_id, database) : [];
  const withClocks = environments.map(async (environment) => {
    const scope = { tenant_id, environment_id: environment.id };
    const clock = await runInEnvironment(environment.id, () => loadClock(database, scope, received_at.getTime()));
    return { ...environment, test_clock_id: clock?.id ?? null };
  });
  return {
    session: session && showTimes(session),
    user,
    tenant,
    environments: await Promise.all(withClocks),
    permissions: listPermissions(user),
  };
}

async function listEnvironments(tenant_id: string, database: Database): Promise<EnvironmentModel[]> {
  return EnvironmentModel.ofTenant(tenant_id, database).where({ status: 'published' }).orderBy(['created_at', 'id']);
}

function showTimes(session: SessionRow) {
  const { id, created_at } = session;
  return { id, created_at, expires_at: deriveSessionEnd(session).toISOString() };
}
