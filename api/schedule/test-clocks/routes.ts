/** Test clocks: simulated time of an environment that is not production. An advance runs all work that falls due on the way. */
import { createTestClock } from '../../../actions/schedule/test-clocks/create-test-clock.ts';
import { deleteTestClock } from '../../../actions/schedule/test-clocks/delete-test-clock.ts';
import { enqueueAdvance, stopTestClock } from '../../../actions/schedule/test-clocks/move-test-clock.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { TestClockModel } from '../../../storage/models/schedule/test-clock.ts';
import { fetchPage } from '../../http/list.ts';
import { idParams, MessageAnswer, type Route, route, toAuthor } from '../../http/route.ts';
import { standardRoutes } from '../../http/standard-routes.ts';
import {
  AdvanceTestClock,
  CreateTestClock,
  TestClockAnswer,
  TestClockFilter,
  TestClockListAnswer,
  testClockGrammar,
} from './schema.ts';

const tag = 'Test clocks';

const clocks = standardRoutes({
  noun: 'test_clock',
  called: { path: '/test-clocks', name: 'TestClock', words: 'test clock' },
  tag,
  answer: TestClockAnswer,
  model: TestClockModel,
  show: (clock: TestClockModel) => clock,
  list: {
    filter: TestClockFilter,
    answer: TestClockListAnswer,
    find: (filter, { scope, services }) =>
      fetchPage(narrow(TestClockModel.in(scope, services.postgres), []), filter, testClockGrammar),
  },
});

export const testClockRoutes: Route[] = [
  clocks.create({
    summary: 'Create a test clock',
    description:
      'Sets the time of the environment to `frozen_time`. From then on requests, events without a timestamp, and ' +
      'due work use this clock. Refused for production, and if subscriptions or invoices exist. An environment ' +
      'has at most one clock.',
    body: CreateTestClock,
    handle: ({ body }, context) =>
      createTestClock(context.services, context.scope, { wanted: body, author: toAuthor(context) }),
  }),
  clocks.list,
  clocks.search,
  clocks.read({
    summary: 'Get a test clock',
    description: 'Returns the current time of the clock. `progress` counts the completed work of the last advance.',
  }),
  route({
    method: 'post',
    path: '/test-clocks/:id/advance',
    operation_id: 'advanceTestClock',
    summary: 'Advance a test clock',
    description:
      'Advances the clock in the background and runs all due work in order, each at its instant: periods end, ' +
      'trials become paid, drafts become final, webhooks are sent. `GET /test-clocks/{id}` shows the progress, ' +
      'and `GET /workflows/{workflow_id}/{run_id}/summary` the completed work. Meanwhile, requests that write in ' +
      'the environment are refused with 409. An earlier time is refused; the current time runs the work that is ' +
      'due now.',
    tag,
    access: 'test_clock:write',
    params: idParams,
    body: AdvanceTestClock,
    success: 202,
    answer: TestClockAnswer,
    idempotency: {
      replay: (_done, { params }, { scope, services }) =>
        TestClockModel.fetch(scope, params.id, { database: services.postgres }),
    },
    handle: ({ params, body }, context) =>
      enqueueAdvance(context.services, context.scope, { id: params.id, ...body, author: toAuthor(context) }),
  }),
  route({
    method: 'post',
    path: '/test-clocks/:id/stop',
    operation_id: 'stopTestClock',
    summary: 'Stop an advancing test clock',
    description:
      'Stops the clock at the instant that it has reached. Completed work remains, and the next advance continues ' +
      'from there. No effect on a clock that does not advance.',
    tag,
    access: 'test_clock:write',
    params: idParams,
    success: 200,
    answer: TestClockAnswer,
    idempotency: {
      replay: (_done, { params }, { scope, services }) =>
        TestClockModel.fetch(scope, params.id, { database: services.postgres }),
    },
    handle: ({ params }, context) =>
      stopTestClock(context.services, context.scope, { id: params.id, author: toAuthor(context) }),
  }),
  route({
    method: 'delete',
    path: '/test-clocks/:id',
    operation_id: 'deleteTestClock',
    summary: 'Delete a test clock',
    description:
      'Returns the environment to real time; its records remain. Refused while the clock advances or a workflow runs, if ' +
      'work is due before the present (advance the clock first), if the environment has connections to providers or ' +
      'has both invoices and corrected events, and if the clock is ahead of real time and the environment has ' +
      'customers, later events or export files.',
    tag,
    access: 'test_clock:write',
    params: idParams,
    success: 200,
    answer: MessageAnswer,
    handle: async ({ params }, context) => {
      const { services, scope } = context;
      const input = { id: params.id, author: toAuthor(context), settings: services.config };
      await deleteTestClock(services, scope, input);
      return { message: 'test clock deleted' };
    },
  }),
];
