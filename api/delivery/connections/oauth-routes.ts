/** Connections whose owner grants access in a browser. */
import { completeOAuth, startOAuth } from '../../../actions/delivery/connections/oauth.ts';
import { type Route, route, toAuthor } from '../../http/route.ts';
import { CompleteOAuth, CompleteOAuthAnswer, InitiateOAuth, InitiateOAuthAnswer } from './schema.ts';

const tag = 'Connections';

export const oauthRoutes: Route[] = [
  route({
    method: 'post',
    path: '/oauth/init',
    operation_id: 'initiateOAuth',
    summary: 'Begin an OAuth flow',
    description:
      'Returns the page on which the owner of the account grants access. The provider sends the browser to `redirect_uri` afterwards; pass its parameters to `POST /oauth/complete` within 10 minutes. Refused in an environment with a test clock.',
    tag,
    access: 'connection:write',
    // The answer counts as secret, because `oauth_url` contains the state of the flow.
    shows_secret: true,
    body: InitiateOAuth,
    success: 200,
    answer: InitiateOAuthAnswer,
    idempotency: 'shown_once',
    handle: ({ body }, context) =>
      startOAuth(context.services, context.scope, {
        flow: body,
        settings: context.services.config,
        author: toAuthor(context),
      }),
  }),
  route({
    method: 'post',
    path: '/oauth/complete',
    operation_id: 'completeOAuth',
    summary: 'Complete an OAuth flow',
    description:
      'Exchanges the code for tokens and creates the connection, or gives an existing connection to this provider the new access. A session can be used once; an expired or used session is answered with 404.',
    tag,
    access: 'connection:write',
    body: CompleteOAuth,
    success: 200,
    answer: CompleteOAuthAnswer,
    idempotency: { replay: async (done) => ({ success: true as const, connection_id: done.touched('connection') }) },
    handle: async ({ body }, context) => {
      const input = { returned: body, settings: context.services.config, author: toAuthor(context) };
      const { id } = await completeOAuth(context.services, context.scope, input);
      return { success: true as const, connection_id: id };
    },
  }),
];
