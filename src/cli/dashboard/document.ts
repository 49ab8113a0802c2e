/** The document of the page. It is the same for everyone and has no fact: the page asks for them with its key. */
export const document = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Understudy</title>
<link rel="stylesheet" href="/page.css">
<script type="module" src="/page.js"></script>
</head>
<body>
<div id="page"><p class="wait">The page loads ...</p></div>
</body>
</html>
`
