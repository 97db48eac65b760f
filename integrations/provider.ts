/**
 * Capabilities that a provider may have. Other code finds providers by capability (find-capability.ts) and names none
 * of them. A new capability is a field here.
 */
import type { z } from 'zod';
import type { ProviderSecrets } from '../core/platform/connection/record.ts';
import type { JobConfig } from '../core/platform/scheduled-task/record.ts';
import type { AccountSettings, InboundEvent, ProviderAccount } from './account.ts';
import type { ExportDestination, LocalFile } from './export-destination.ts';
import type { Mailer } from './mailer.ts';
import type { OAuthCapability } from './oauth.ts';
import type { PaymentProvider, SimulatedChargeBook } from './payment-provider.ts';
import type { WebhookBackend } from './webhook-backend.ts';

export type Provider = {
  readonly payments?: PaymentCapability;
  readonly export_destination?: ExportCapability;
  readonly webhook_delivery?: WebhookCapability;
  readonly mail?: MailCapability;
  readonly account?: AccountCapability;
};

/** Records and operations that an account may support. The documentation and `GET /integrations/config` list them from here. */
export const EXCHANGES = [
  'customer',
  'invoice',
  'payment',
  'payment_link',
  'saved_card',
  'refund',
  'credit_note',
  'deal',
  'pull',
  'inbound',
] as const;
export type Exchange = (typeof EXCHANGES)[number];

/** Accounts of tenants at a provider. The credentials of a connection open one account. */
export type AccountCapability = {
  /** Shape of the credentials in a request: an object of texts, whose descriptions appear in the API. */
  readonly secrets: z.ZodObject;
  readonly exchanges: readonly Exchange[];
  /**
   * The provider is a merchant of record: it adds its own tax to the invoices in this currency that it receives, and
   * owes it. No tax is added here to invoices that go to it (docs/rules/taxes.md, "Merchant of record").
   */
  collects_tax?(currency: string): boolean;
  /**
   * Rate limit of the provider for one account. If absent, requests are not delayed, and only the provider limits them.
   * Rate limit of the provider for one account, or its computation if the plan of the account decides. If absent,
   * requests are not delayed, and only the provider limits them.
   */
  readonly requests_per_second?: number | ((secrets: ProviderSecrets) => number);
  /** Whether the credentials move real money; null if the provider's keys do not show it. */
  detectLive(secrets: ProviderSecrets): boolean | null;
  /** Opens the account; the provider's library is loaded at the first call. */
  open(secrets: ProviderSecrets, settings: AccountSettings): Promise<ProviderAccount>;
  /**
   * Names of the credentials that sign webhooks, the current one first. If the current one is not set, no webhook is
   * accepted.
   */
  readonly webhook_secrets?: readonly [string, ...string[]];
  /**
   * Throws `permission_denied` with status 401 unless one of the secrets signed the webhook. It receives one secret for
   * each of `webhook_secrets` and tries all of them, so that the response time does not reveal whether a connection
   * exists.
   */
  verifyWebhook?(secrets: readonly string[], webhook: InboundWebhook): void;
  /** Headers of each webhook that contain its signature, in lower case; none if the body may contain it. A webhook without one is refused. */
  readonly signature_headers?: readonly string[];
  /** Query parameters that the address of a webhook may have; absent if it has none. */
  readonly webhook_query?: z.ZodObject;
  /** Content type that the body of a webhook may have besides JSON. */
  readonly webhook_body_type?: string;
  /** The provider refuses an answer to its webhook that has a body. */
  readonly wants_empty_answer?: boolean;
  /** Parses a verified webhook; throws `validation_error` if it does not have the provider's form. */
  parseWebhook?(webhook: Pick<InboundWebhook, 'headers' | 'body' | 'url'>): readonly InboundEvent[];
  /**
   * OAuth of providers whose accounts are connected in a browser. `access_token` and `refresh_token` are among the
   * `secrets` of a request, but stored apart; `open` gets the current `access_token`.
   */
  readonly oauth?: OAuthCapability;
};

export type InboundWebhook = {
  /** Header names are in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The signed bytes, as received. */
  readonly body: Uint8Array;
  readonly now: Date;
  /** Method and full address of the request as its sender used them, for signatures that cover them. */
  readonly method?: string;
  readonly url?: string;
};

type PaymentCapability = {
  /** False for a simulated provider, which production environments refuse. */
  readonly moves_money: boolean;
  create(storage: { readonly simulated_charges: SimulatedChargeBook }): PaymentProvider;
};

export type ExportProviderSettings = {
  readonly EXPORT_DIRECTORY?: string | undefined;
  readonly EXPORT_ALLOW_PRIVATE_ADDRESSES: boolean;
};

type ExportConnection = {
  readonly id: string;
  readonly job_config: JobConfig;
  readonly settings: ExportProviderSettings;
  /** Decrypts the credentials; null if the connection has none. */
  openSecrets(): ProviderSecrets | null;
};

export type ExportCapability = {
  /** Whether tenants share the destination; its keys then begin with the tenant and the environment. */
  readonly is_shared: boolean;
  /** Credentials in a request; null if the destination needs none. */
  readonly secrets: z.ZodObject | null;
  create(connection: ExportConnection): ExportDestination;
  /** Opens a file on this machine, which the service itself sends to the client. */
  openFile?(settings: ExportProviderSettings, key: string): Promise<LocalFile>;
};

type WebhookCapability = {
  /** Null if the settings do not select this provider. */
  create(settings: WebhookSettings): WebhookBackend | null;
};

export type WebhookSettings = {
  readonly SVIX_TOKEN?: string | undefined;
  readonly SVIX_SERVER_URL?: string | undefined;
  readonly WEBHOOK_ALLOW_PRIVATE_ADDRESSES: boolean;
};

type MailCapability = {
  /** Null if the settings configure no mail server. */
  create(settings: MailSettings): Mailer | null;
};

export type MailSettings = { readonly SMTP_URL?: string; readonly MAIL_FROM?: string };
