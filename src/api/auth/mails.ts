// /auth/mails: the kinds of email, which a person mutes with `PATCH /auth/me`.
import { viewMailKinds } from '../../services/mail/index.ts'
import type { AuthPlugin } from './plugin.ts'

export const mailSettingRoutes: AuthPlugin = async (app) => {
  app.get('/auth/mails', async () => ({ mails: viewMailKinds() }))
}
