/** Sign-up and sign-in of programs: they need no key and return a token (http/token.ts). Browsers have sessions. */
import { signIn } from '../../../actions/operations/access/sign-in.ts';
import { signUp } from '../../../actions/operations/access/sign-up.ts';
import { AuthAnswer, Login, SignUp } from '../../foundation/auth/schema.ts';
import { getRateLimits } from '../../http/auth.ts';
import { clientAddress } from '../../http/rate-limit.ts';
import { type Context, type Route, route } from '../../http/route.ts';
import { makeToken } from '../../http/token.ts';
import { limitAttempts } from './attempts.ts';
import { refuseClosedSignUp, sessionRoutes } from './session-routes.ts';

const tag = 'Signing in';

export const authRoutes: Route[] = [
  route({
    method: 'post',
    path: '/auth/signup',
    operation_id: 'signUp',
    summary: 'Sign up a new tenant',
    description:
      'Creates a tenant with the environments Development and Production (`GET /environments`), and its first user with the role super_admin. Refused if the operator has closed sign-up (`SIGN_UP`), and with 409 for an email that already signs in.',
    tag,
    access: 'public',
    body: SignUp,
    success: 200,
    answer: AuthAnswer,
    handle: async ({ body }, context) => {
      const { services, now, request } = context;
      getRateLimits(services).countSigning(request);
      refuseClosedSignUp(services);
      const { user } = await signUp(services, { wanted: body, now });
      return answered({ user_id: user.id, tenant_id: user.tenant_id, environment_id: null }, context);
    },
  }),
  route({
    method: 'post',
    path: '/auth/login',
    operation_id: 'login',
    summary: 'Sign in with email and password',
    description:
      'Returns a token with the roles of the user. A wrong email and a wrong password are refused with the same 403. After five of them, attempts are refused with 429 for 15 minutes.',
    tag,
    access: 'public',
    body: Login,
    success: 200,
    answer: AuthAnswer,
    handle: async ({ body }, context) => {
      const { services, request } = context;
      getRateLimits(services).countSigning(request);
      const whom = [clientAddress(request), body.email.toLowerCase()];
      return answered(await limitAttempts(whom, () => signIn(services, body)), context);
    },
  }),
  ...sessionRoutes,
];

async function answered(who: Parameters<typeof makeToken>[1], { services, now }: Context) {
  const token = await makeToken(services, who, now);
  return { token, user_id: who.user_id, tenant_id: who.tenant_id };
}
