// Uploads: content addressed by its hash, sent before or after the deployment that uses it.
import { Type } from '@sinclair/typebox'
import { Named, Nullable, Timestamp } from './common.ts'

export const Sha256 = Type.String({
  pattern: '^[0-9a-f]{64}$',
  description: 'must be the SHA-256 of the content: 64 lower-case hexadecimal digits',
})

const exampleHash = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'

export const Upload = Type.Object(
  {
    sha256: Type.String(),
    size: Type.Integer({ description: 'Bytes of the whole content' }),
    offset: Type.Integer({ description: 'How many of its bytes are here: where the next piece begins' }),
    complete: Type.Boolean(),
    expiresAt: Nullable(
      Type.String({
        format: 'date-time',
        description: 'When it is forgotten unless a deployment needs it; null if one does',
      }),
    ),
  },
  {
    $id: 'Upload',
    description: 'Content that was uploaded, or as much of it as came',
    examples: [{ sha256: exampleHash, size: 4, offset: 4, complete: true, expiresAt: null }],
  },
)

export const Uploads = Type.Object(
  { uploads: Type.Array(Named(Upload)) },
  { $id: 'Uploads', description: 'What an archive brought' },
)

export const UploadContent = Type.String({
  $id: 'UploadContent',
  format: 'binary',
  description: 'The bytes',
  examples: ['test'],
})

export const UploadArchive = Type.String({
  $id: 'UploadArchive',
  format: 'binary',
  description: 'A tar archive of files, each under the SHA-256 of its content as its name',
  examples: ['(a tar archive)'],
})

export const SourceArchive = Type.String({
  $id: 'SourceArchive',
  format: 'binary',
  description: 'A tar archive of the files to deploy, or the same compressed by gzip',
  examples: ['(a tar archive)'],
})

export const UploadParams = Type.Object({ sha256: Sha256 })

export const DeploymentUploads = Type.Object(
  {
    missing: Type.Array(Type.String(), {
      description:
        'SHA-256 of what has to be uploaded before the build begins. The response that creates the deployment lists ' +
        'everything, every other one at most 500: upload those and read the deployment again, until the list is empty',
    }),
    missingFiles: Type.Integer({
      minimum: 0,
      description: 'How many files have no content yet; files with the same content need only one upload',
    }),
    expiresAt: Nullable(Timestamp),
  },
  {
    $id: 'DeploymentUploads',
    description: 'What a deployment still waits for; it is given up at `expiresAt`, an hour after the last file came',
    examples: [{ missing: [exampleHash], missingFiles: 1, expiresAt: '2026-11-14T10:31:00.000Z' }],
  },
)

/** Longer lists are refused before they are checked. */
export const maxSourceFiles = 50_000

export const SourceFile = Type.Object(
  {
    path: Type.String({
      minLength: 1,
      maxLength: 1024,
      description: 'Path below the root of the project, such as src/index.html',
    }),
    sha256: Sha256,
    size: Type.Integer({ minimum: 0, description: 'Bytes of its content' }),
    mode: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 0o177777,
        description:
          'As stat has it: 493 (0755) for a program; 40960 (0120000) for a link, whose content is its target. Left out: a plain file',
      }),
    ),
  },
  { $id: 'SourceFile', additionalProperties: false, description: 'A file to deploy' },
)

export const DeploymentSource = Type.Object(
  {
    files: Type.Array(SourceFile, { minItems: 1, maxItems: maxSourceFiles }),
    prebuilt: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'The files are published as they are; nothing is installed or built',
      }),
    ),
  },
  { $id: 'DeploymentSource', additionalProperties: false, description: 'Files to deploy instead of a commit' },
)
