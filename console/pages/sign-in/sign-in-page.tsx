/** Signs a person in, or makes the first account of a company where the installation allows that. */
import { PasswordInput, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useRouter, useSearch } from '@tanstack/react-router';
import { type FormEvent, type ReactNode, useState } from 'react';
import { API_BASE, readError } from '../../client/client.ts';
import { createSession } from '../../client/session.ts';
import { findFieldError } from '../../components/field-errors.ts';
import { FormFoot, useDeed } from '../../components/form.tsx';
import { TextButton } from '../../components/text-button.tsx';
import { LonePage } from '../../shell/lone-page.tsx';
import { defineTexts, useTexts } from '../../texts/texts.ts';

export function SignInPage(): ReactNode {
  const texts = useTexts(TEXTS);
  const { to } = useSearch({ from: '/sign-in' });
  const navigate = useNavigate();
  const router = useRouter();
  const { queries } = router.options.context;
  const [isNew, setNew] = useState(false);
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  const [company, setCompany] = useState('');
  const options = useQuery({ queryKey: ['/auth/options'], queryFn: loadOptions });
  const wasRefused = sessionStorage.getItem('farthing.link_refused') !== null;
  const signIn = useDeed(
    () => createSession(isNew ? { email, password, tenant_name: company, sign_up: true } : { email, password }),
    async () => {
      // Another person may have been signed in before: nothing that they read is shown, nor the records that they opened.
      sessionStorage.clear();
      queries.clear();
      // Only a path of this console is a target, so that no link leads a person who signs in elsewhere.
      if (to?.startsWith('/env/')) router.history.push(to);
      else await navigate({ to: '/' });
    },
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    signIn.mutate(undefined);
  };
  return (
    <LonePage onSubmit={submit}>
      <h1>{isNew ? texts.signUp : texts.signIn}</h1>
      {wasRefused && (
        <p role="alert" className="muted">
          {texts.linkRefused}
        </p>
      )}
      {isNew && (
        <TextInput
          label={texts.company}
          value={company}
          required
          autoComplete="organization"
          error={findFieldError(signIn, 'tenant_name')}
          onChange={({ currentTarget }) => setCompany(currentTarget.value)}
        />
      )}
      <TextInput
        label={texts.email}
        type="email"
        value={email}
        required
        autoComplete="username"
        error={findFieldError(signIn, 'email')}
        onChange={({ currentTarget }) => setEmail(currentTarget.value)}
      />
      <PasswordInput
        label={texts.password}
        value={password}
        required
        autoComplete={isNew ? 'new-password' : 'current-password'}
        error={findFieldError(signIn, 'password')}
        onChange={({ currentTarget }) => setPassword(currentTarget.value)}
        visibilityToggleButtonProps={{ 'aria-label': texts.showPassword }}
      />
      <FormFoot
        needs={null}
        deed={signIn}
        fields={['tenant_name', 'email', 'password']}
        action={isNew ? texts.create : texts.signIn}
      />
      {options.data?.sign_up_open && (
        <TextButton onClick={() => setNew(!isNew)}>{isNew ? texts.haveAccount : texts.noAccount}</TextButton>
      )}
    </LonePage>
  );
}

async function loadOptions(): Promise<{ sign_up_open: boolean }> {
  const response = await fetch(`${API_BASE}/auth/options`);
  if (!response.ok) throw await readError(response);
  return (await response.json()) as { sign_up_open: boolean };
}

const TEXTS = defineTexts(
  {
    signIn: 'Sign in',
    signUp: 'Create an account',
    create: 'Create account',
    company: 'Company',
    email: 'E-mail',
    password: 'Password',
    showPassword: 'Show the password',
    haveAccount: 'I have an account',
    noAccount: 'Create an account for a new company',
    linkRefused: 'The link has been used or is too old. Start the service again for a new one, or sign in.',
  },
  {
    de: {
      signIn: 'Anmelden',
      signUp: 'Konto anlegen',
      create: 'Konto anlegen',
      company: 'Unternehmen',
      email: 'E-Mail',
      password: 'Passwort',
      showPassword: 'Passwort zeigen',
      haveAccount: 'Ich habe ein Konto',
      noAccount: 'Konto für ein neues Unternehmen anlegen',
      linkRefused: 'Der Link wurde schon benutzt oder ist zu alt. Starten Sie den Dienst neu oder melden Sie sich an.',
    },
  },
);
