/** Delivery of webhooks: a backend sends a message to its receiver and returns the result. */

export type WebhookMessage = {
  /** Id of the system event, equal for every attempt, so that a receiver recognizes a repeat. */
  readonly id: string;
  readonly event_name: string;
  /** The bytes to send and to sign. */
  readonly body: string;
  readonly tenant_id: string;
  readonly environment_id: string;
};

export type SendOutcome = {
  readonly url: string;
  /** Null if there was no answer. */
  readonly http_status: number | null;
  readonly response_body: string | null;
  /** Null if the receiver accepted the message. */
  readonly error: string | null;
  /** Detail for the service's own log only. */
  readonly detail?: string;
  readonly duration_ms: number;
};

/** Endpoint to which the built-in backend sends; a managed service stores the endpoints itself. */
export type WebhookTarget = { readonly url: string; readonly secrets: readonly string[] };

export type WebhookScope = Pick<WebhookMessage, 'tenant_id' | 'environment_id'>;

export interface WebhookBackend {
  /** Whether this service stores the endpoints: then every message has a target. */
  readonly has_targets: boolean;
  /** Sends a message. It never throws because of the receiver. */
  send(message: WebhookMessage, target: WebhookTarget | null): Promise<SendOutcome>;
  /** Opens the page that manages the endpoints, if a managed service stores them. */
  dashboard?(
    scope: WebhookScope,
    caller: { may_change: boolean },
  ): Promise<{ url: string; token: string; app_id: string }>;
}
