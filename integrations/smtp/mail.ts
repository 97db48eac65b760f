/** Sends mail by SMTP with nodemailer, and separates permanent rejections from failures that a retry may fix. */
import { createTransport } from 'nodemailer';

import type { Mailer, MailResult } from '../mailer.ts';

const CONNECTION_TIMEOUT_MS = 10_000;
const SOCKET_TIMEOUT_MS = 30_000;

/** Creates the mailer. The scheme of `url` is smtp:// (TLS by STARTTLS) or smtps:// (TLS from the start). */
export function createSmtpMailer({ url, from }: { url: string; from: string }): Mailer {
  const transport = createTransport(url, { from });
  Object.assign(transport.options, {
    connectionTimeout: CONNECTION_TIMEOUT_MS,
    greetingTimeout: CONNECTION_TIMEOUT_MS,
    socketTimeout: SOCKET_TIMEOUT_MS,
    // Forbids nodemailer to fetch URLs and read files: attachments are given as bytes.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return {
    async send({ to, reply_to, bcc, subject, text, attachment, message_id }) {
      try {
        const { rejected, rejectedErrors = [] } = await transport.sendMail({
          to,
          bcc: [...bcc],
          ...(reply_to === null ? {} : { replyTo: reply_to }),
          subject,
          text,
          messageId: message_id,
          attachments: [{ filename: attachment.name, contentType: attachment.type, content: attachment.bytes }],
        });
        // The mail counts as sent if the customer's address was accepted, even if a bcc address was not.
        if (!rejected.some((address) => toAddress(address) === to)) return { outcome: 'sent' };
        return toRejectedOrThrow(
          rejectedErrors.find(({ recipient }) => recipient === to) ?? new Error(`${to} was not accepted`),
        );
      } catch (error) {
        return toRejectedOrThrow(error as SmtpError);
      }
    },
  };
}

type SmtpError = Error & { readonly responseCode?: number; readonly command?: string };

function toAddress(address: string | { readonly address: string }): string {
  return typeof address === 'string' ? address : address.address;
}

/**
 * Whether a failure is permanent. A 5xx response for the recipient or the message is permanent (RFC 5321, 4.2.1). A 5xx response for the
 * login or the sender is a fault of the configuration, which can be fixed, so the message is sent again.
 */
function toRejectedOrThrow(error: SmtpError): MailResult {
  const { responseCode = 0, command = '', message } = error;
  if (responseCode >= 500 && (command === 'RCPT TO' || command === 'DATA'))
    return { outcome: 'refused', detail: message };
  throw error;
}
