/**
 * Opens a span per request, from its arrival to the end of its answer, named after its route. A `traceparent` of the caller is continued.
 * Mounted only if there is a tracer, and after logRequests, which assigns the request id.
 */
import type { RequestHandler } from 'express';
import { startTrace, within } from '../../tracing/spans.ts';
import { isQuiet } from './request-log.ts';

export const traceRequests: RequestHandler = (request, response, next) => {
  if (isQuiet(request.url)) return next();
  const { method } = request;
  const began_ms = request.arrived_ms;
  const span = startTrace(method, { kind: 'server', began_ms, parent: request.get('traceparent') });
  if (span === undefined) return next();
  response.locals.trace_id = span.trace_id;
  response.once('close', () => {
    const { route, scope = {} } = response.locals;
    const { statusCode: status, writableFinished } = response;
    if (route !== undefined) span.rename(`${method} ${route}`);
    if (status >= 500 || !writableFinished) span.fail({ code: writableFinished ? status : 'aborted' });
    span.set({
      'http.request.method': method,
      'http.route': route,
      'http.response.status_code': writableFinished ? status : undefined,
      request_id: request.id as string,
      ...scope,
    });
    span.end();
  });
  within(span, next);
};
